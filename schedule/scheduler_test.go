package schedule

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestEachTickRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		var all []*replica
		for _, name := range names(3) {
			r := f.replica(name, 0)
			r.job("second", everySecond(), 10*time.Millisecond)
			r.job("interval", gocron.DurationJob(700*time.Millisecond), 0)
			r.job("beside", gocron.DurationJob(time.Second), 1500*time.Millisecond,
				WithOverlap(OverlapAllow))
			r.Start()
			all = append(all, r)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		f.stop(all)
		f.check()
		f.record.All(t, "second", f.due(time.Second))
		f.record.All(t, "interval", f.due(700*time.Millisecond))
		f.record.All(t, "beside", f.due(time.Second))
	})
}

// ShedLock 6, 177, 1502: a task shorter than the clock difference ran twice. The clocks of gocron
// and of the client are both off, by up to 5 s both ways.
func TestClocksThatAreOff(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 5)
				var all []*replica
				for i, name := range names(5) {
					r := f.replica(name, time.Duration(i-2)*ahead/2)
					r.job("job", everySecond(), 5*time.Millisecond)
					r.Start()
					all = append(all, r)
				}
				time.Sleep(200*time.Second + 500*time.Millisecond)
				f.stop(all)
				f.check()
				f.record.All(t, "job", f.due(time.Second))
				if early := f.skips(ErrTickTooEarly); len(early) > 0 {
					t.Errorf("%d ticks were too early, the first: %v", len(early), early[0].Err)
				}
			})
		})
	}
}

// gocron 438, 385, 396: a clock was stepped or the machine slept. One of three replicas, its wall
// clock stepped back an hour, ahead an hour, and back to right.
func TestClocksThatAreStepped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*replica
		for _, name := range names(3) {
			r := f.replica(name, 0)
			r.job("job", gocron.CronJob("* * * * *", false), time.Second)
			r.Start()
			all = append(all, r)
		}
		for _, step := range []time.Duration{-time.Hour, 2 * time.Hour, -time.Hour} {
			time.Sleep(10*time.Minute + 17*time.Second)
			f.nodes.StepClock(all[0].client, step)
		}
		time.Sleep(10 * time.Minute)
		f.stop(all)
		f.check()
		f.record.All(t, "job", f.due(time.Minute))
	})
}

// kubernetes 42649, 45825: after an outage the schedule stopped for ever. All nodes are down for
// three hours.
func TestAnOutageOfAllNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*replica
		for _, name := range names(3) {
			r := f.replica(name, 0)
			r.job("job", gocron.CronJob("* * * * *", false), 0)
			r.Start()
			all = append(all, r)
		}
		time.Sleep(5*time.Minute + 30*time.Second)
		for _, n := range f.nodes.Nodes() {
			n.Stop()
		}
		before := f.due(time.Minute)
		time.Sleep(3 * time.Hour)
		for _, n := range f.nodes.Nodes() {
			n.Start()
		}
		down := len(f.due(time.Minute))
		time.Sleep(11 * time.Minute)
		f.stop(all)
		f.check()
		// The nodes that started vote after MaxTTL, 10 s, so the next tick runs.
		f.record.All(t, "job", append(before, f.due(time.Minute)[down:]...))
		for _, e := range f.skips(ErrTickUndecided) {
			wantIs(t, e.Err, []error{redlock.ErrNoQuorum}, redlock.ErrHeld, ErrTickTaken)
		}
	})
}

// bullmq 453, 2889: every deploy added another copy of the schedule. Replicas of two versions, the
// cron written in two ways, restarted one after the other.
func TestRollingDeploys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		tabs := []string{"* * * * * *", "*/1 * * * * *"}
		start := func(i int) *replica {
			r := f.replica(names(3)[i%3], 0)
			r.job("job", gocron.CronJob(tabs[i%2], true), 20*time.Millisecond)
			r.Start()
			return r
		}
		running := []*replica{start(0), start(1), start(2)}
		for i := range 30 {
			time.Sleep(970 * time.Millisecond)
			running[i%3].stop()
			running[i%3] = start(i)
		}
		f.stop(running)
		f.check()
		f.record.All(t, "job", f.due(time.Second))
	})
}

// sidekiq-scheduler 156: intervals that count from the start are starved by frequent deploys.
func TestIntervalsAndDeploys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		r.job("job", gocron.DurationJob(10*time.Minute), time.Second)
		r.Start()
		for range 30 {
			time.Sleep(4 * time.Minute)
			next := f.replica("a", 0)
			next.job("job", gocron.DurationJob(10*time.Minute), time.Second)
			next.Start()
			r.stop()
			r = next
		}
		r.stop()
		f.check()
		due := f.due(10 * time.Minute)
		if len(due) < 12 {
			t.Fatalf("only %d ticks were due", len(due))
		}
		f.record.All(t, "job", due)
	})
}

// The run before is still under way: the tick is passed over, on record, on all replicas.
func TestOverlapSkip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*replica
		for _, name := range names(3) {
			r := f.replica(name, 0)
			r.job("job", everySecond(), 2500*time.Millisecond)
			r.Start()
			all = append(all, r)
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		f.stop(all)
		f.check()
		f.record.Apart(t)
		if runs := len(f.record.Runs("job")); runs != 10 {
			t.Errorf("%d runs of 2.5 s in 30 s, want 10", runs)
		}
		passed := f.skips(ErrTickTaken)
		for _, e := range passed {
			wantIs(t, e.Err, []error{redlock.ErrHeld}, redlock.ErrNoQuorum)
		}
	})
}

// A run whose lock is lost is told, with the reason, and the next tick runs.
func TestARunThatLosesItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var ended events
		a := f.replica("a", 0, WithObserver(&Observer{Ended: ended.add}))
		a.job("job", gocron.CronJob("* * * * *", false), time.Hour)
		b := f.replica("b", 0)
		a.Start()
		time.Sleep(time.Minute + time.Second)
		a.cut()
		b.job("job", gocron.CronJob("* * * * *", false), 0)
		b.Start()
		time.Sleep(2 * time.Minute)
		got := ended.all()
		if len(got) != 1 || !errors.Is(got[0].Err, redlock.ErrLost) || got[0].Took > 12*time.Second {
			t.Errorf("got %+v, want one run that ended with its lock", got)
		} else if text := got[0].Err.Error(); strings.Count(text, "lost") != 1 {
			t.Errorf("got %q, want that to be said once: the run returned the reason itself", text)
		}
		a.heal()
		f.stop([]*replica{a, b})
		f.check()
		f.record.All(t, "job", f.due(time.Minute))
	})
}

func TestPanicsErrorsAndExits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		broken := errors.New("broken")
		var ended events
		r := f.replica("a", 0, WithObserver(&Observer{Ended: ended.add}))
		n := 0
		_, err := r.Add("job", everySecond(), func(context.Context, Tick) error {
			n++
			switch n {
			case 1:
				return broken
			case 2:
				panic(broken)
			case 3:
				runtime.Goexit()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Start()
		time.Sleep(4500 * time.Millisecond)
		r.stop()
		got := ended.all()
		if len(got) != 4 {
			t.Fatalf("%d runs ended, want 4: %+v", len(got), got)
		}
		for i, want := range []func(error) bool{
			func(err error) bool { return errors.Is(err, broken) },
			func(err error) bool { return err != nil },
			func(err error) bool { return errors.Is(err, errExited) },
			func(err error) bool { return err == nil },
		} {
			if !want(got[i].Err) {
				t.Errorf("run %d: got %v", i+1, got[i].Err)
			}
		}
	})
}
