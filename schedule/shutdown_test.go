package schedule

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/redlock"
)

// A bubble that ends finds every goroutine that is left: these tests need no other check for it.

func TestShutdownLetsRunsFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		r.job("job", everySecond(), 3*time.Second)
		r.Start()
		time.Sleep(1500 * time.Millisecond)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("Shutdown took %v, want until the run's end", took)
		}
		runs := f.record.Runs("job")
		if len(runs) != 1 || runs[0].Ended.Sub(runs[0].Began) != 3*time.Second {
			t.Errorf("got %v, want one run of 3 s", runs)
		}
	})
}

func TestShutdownEndsContexts(t *testing.T) {
	t.Parallel()
	for _, overlap := range []Overlap{OverlapSkip, OverlapAllow} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 3)
			var cause error
			r := f.replica("a", 0)
			_, err := r.Add("job", gocron.CronJob("* * * * *", false),
				func(ctx context.Context, _ Tick) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				}, WithOverlap(overlap))
			if err != nil {
				t.Fatal(err)
			}
			r.Start()
			time.Sleep(61 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			err = r.Shutdown(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want that the runs had to be ended", err)
			}
			if took := time.Since(began); took > 1100*time.Millisecond {
				t.Errorf("Shutdown took %v", took)
			}
			if !errors.Is(cause, errShutDown) {
				t.Errorf("cause: got %v", cause)
			}
			// The run lock was freed by that.
			b := f.replica("b", 0)
			b.job("job", gocron.CronJob("* * * * *", false), 0, WithOverlap(overlap))
			b.Start()
			time.Sleep(time.Minute)
			b.stop()
			if n := len(f.record.Runs("job")); n != 1 {
				t.Errorf("%d runs at the other replica, want 1", n)
			}
		})
	}
}

// A run that ignores its context keeps nobody: not Shutdown, and not gocron, which would spin.
func TestShutdownWithAStuckRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		stuck := make(chan struct{})
		r := f.replica("a", 0)
		if _, err := r.Add("job", everySecond(), func(context.Context, Tick) error {
			<-stuck
			time.Sleep(time.Hour)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		r.Start()
		time.Sleep(1500 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := r.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > settleTime+time.Millisecond {
			t.Errorf("Shutdown took %v", took)
		}
		if err := r.Shutdown(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("again: got %v, want the same", err)
		}
		close(stuck)
		time.Sleep(2 * time.Hour)
	})
}

// An uncommitted claim is given back at once, so that another replica runs the tick.
func TestShutdownGivesClaimsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		for _, n := range f.nodes.Nodes() {
			n.Delay(80 * time.Millisecond)
		}
		a, b := f.replica("a", 0), f.replica("b", 0)
		a.job("job", gocron.CronJob("* * * * *", false), 0)
		a.Start()
		time.Sleep(time.Until(f.began.Add(time.Minute)) + 50*time.Millisecond)
		// The nodes have granted a's claim by now; it has not heard of that.
		a.stop()
		if len(f.record.Runs("job")) != 0 {
			t.Fatalf("runs before the commit can have come back: %v", f.record.Runs("job"))
		}
		// b comes to the same tick as if it was late: by its own claimer.
		c := &claimer{access: b.access, job: "job", turns: newTurns(b.access.NodeTimeout), now: b.clock.Now}
		began := time.Now()
		c.gets(t, tickAt(f.began.Add(time.Minute)))
		if took := time.Since(began); took > 600*time.Millisecond {
			t.Errorf("the other replica got it after %v, want a few round trips", took)
		}
		b.stop()
	})
}

func TestShutdownAtAnyMoment(t *testing.T) {
	t.Parallel()
	for after := range 40 {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 3)
			a, b := f.replica("a", 0), f.replica("b", 0)
			for _, r := range []*replica{a, b} {
				r.job("job", everySecond(), 3*time.Millisecond)
				r.Start()
			}
			time.Sleep(time.Until(f.began.Add(2*time.Second + time.Duration(after)*250*time.Microsecond)))
			a.stop()
			time.Sleep(1500 * time.Millisecond)
			f.stop([]*replica{b})
			f.check()
			f.record.All(t, "job", f.due(time.Second))
		})
	}
}

func TestASchedulerIsUsedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		j := r.job("job", everySecond(), 0)
		if next, err := j.NextRun(); err != nil || !next.IsZero() {
			t.Errorf("NextRun before Start: got %v, %v", next, err)
		}
		if err := r.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown before Start: %v", err)
		}
		r.Start()
		_, err := r.Add("other", everySecond(), r.records(0))
		if !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("Add after Shutdown: got %v", err)
		}
		if err := j.RunNow(); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("RunNow after Shutdown: got %v", err)
		}
		if _, err := j.NextRun(); !errors.Is(err, gocron.ErrJobNotFound) {
			t.Errorf("NextRun after Shutdown: got %v", err)
		}
		began := time.Now()
		//lint:ignore SA1019 users may still call LastRun
		for name, ask := range map[string]func() (time.Time, error){"LastRun": j.LastRun,
			"LastRunStartedAt": j.LastRunStartedAt, "LastRunCompletedAt": j.LastRunCompletedAt} {
			if _, err := ask(); !errors.Is(err, gocron.ErrJobNotFound) {
				t.Errorf("%s after Shutdown: got %v", name, err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("what a job says of its last run took %v after Shutdown", took)
		}
		time.Sleep(2 * time.Second)
		if runs := f.record.Runs(""); len(runs) > 0 {
			t.Errorf("runs after Shutdown: %v", runs)
		}
		var twice *Scheduler
		if twice, err = New(r.client); err != nil {
			t.Fatal(err)
		}
		twice.Start()
		twice.Start()
		_ = twice.Shutdown(t.Context())
	})
}

func TestRemove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		j := r.job("job", everySecond(), 700*time.Millisecond)
		if err := r.Remove("other"); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("Remove of no job: got %v", err)
		}
		r.Start()
		time.Sleep(1100 * time.Millisecond)
		if err := r.Remove("job"); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if err := j.RunNow(); !errors.Is(err, gocron.ErrJobNotFound) {
			t.Errorf("RunNow of a removed job: got %v", err)
		}
		runs := f.record.Runs("job")
		if len(runs) != 1 || runs[0].Ended.Sub(runs[0].Began) != 700*time.Millisecond {
			t.Errorf("got %v, want the one run to end by itself", runs)
		}
		r.job("job", everySecond(), 0) // the name is free again
		time.Sleep(time.Second)
		r.stop()
		if n := len(f.record.Runs("job")); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	})
}

func TestRunNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*replica
		var jobs []gocron.Job
		for _, name := range names(3) {
			r := f.replica(name, 0)
			jobs = append(jobs, r.job("job", gocron.CronJob("* * * * *", false), 100*time.Millisecond))
			if err := jobs[len(jobs)-1].RunNow(); !errors.Is(err, redlock.ErrInvalid) {
				t.Errorf("RunNow before Start: got %v", err)
			}
			r.Start()
			all = append(all, r)
		}
		for i := range 20 { // at once on all replicas, also around ticks
			time.Sleep(time.Until(f.began.Add(time.Duration(i)*30*time.Second - time.Millisecond)))
			for _, j := range jobs {
				if err := j.RunNow(); err != nil {
					t.Error(err)
				}
			}
		}
		time.Sleep(10 * time.Second)
		if running, err := jobs[0].IsRunning(); running || err != nil {
			t.Errorf("IsRunning: got %v, %v", running, err)
		}
		f.stop(all)
		f.check()
		f.record.Apart(t)
		manual := 0
		for _, run := range f.record.Runs("job") {
			if run.Manual {
				manual++
			}
		}
		if manual < 10 || manual > 60 {
			t.Errorf("%d runs on request of 60 requests, want 10 to 60", manual)
		}
		// A tick that falls into a run on request is passed over: nothing else is missing.
		missed := f.record.Missed("job", f.due(time.Minute))
		passed := make(map[int64]bool)
		for _, e := range f.skips(ErrTickTaken) {
			passed[e.Tick.At.UnixMilli()] = true
		}
		for _, at := range missed {
			if !passed[at.UnixMilli()] {
				t.Errorf("the tick at %v did not run, and was not passed over", at)
			}
		}
	})
}

// RunNow just before a tick, under OverlapAllow: the tick runs all the same.
func TestRunNowUsesUpNoTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		j := r.job("job", everySecond(), 0, WithOverlap(OverlapAllow))
		r.Start()
		for i := range 40 {
			time.Sleep(time.Until(f.began.Add(time.Duration(i+1)*time.Second +
				time.Duration(i-20)*time.Millisecond)))
			if err := j.RunNow(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(500 * time.Millisecond)
		f.stop([]*replica{r})
		f.record.Once(t)
		f.record.All(t, "job", ticktest.Every(time.Second, f.began, f.ended))
		if runs := f.record.Runs("job"); len(runs) != 80 {
			t.Errorf("%d runs, want 40 ticks and 40 on request", len(runs))
		}
	})
}
