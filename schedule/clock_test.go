package schedule

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// off is how far the clock is from the nodes'.
func (r *replica) off() time.Duration { return time.Until(r.clock.Now()).Abs() }

func TestTheClockFollowsTheNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", -7*time.Second)
		if got := r.off(); got != 7*time.Second {
			t.Errorf("before the nodes were asked: off by %v, want 7s", got)
		}
		r.Start()
		if got := r.off(); got > 2*time.Millisecond {
			t.Errorf("after Start: off by %v", got)
		}
		for _, step := range []time.Duration{time.Hour, -2 * time.Hour, 30 * time.Millisecond} {
			f.nodes.StepClock(r.client, step)
			if got := r.off(); got > 2*time.Millisecond {
				t.Errorf("with the wall clock stepped by %v: off by %v", step, got)
			}
			time.Sleep(3 * time.Second)
			if got := r.off(); got > 2*time.Millisecond {
				t.Errorf("3 s after a step of %v: off by %v", step, got)
			}
		}
		if r.clock.Since(r.clock.Now()) > time.Millisecond || r.clock.Until(r.clock.Now()) > 0 {
			t.Error("Since and Until go by another clock")
		}
		r.stop()
	})
}

// Where ticks are frequent their claims tell the time, and nobody asks for it alone.
func TestClaimsTellTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := fakenode.New("node:6379")
		client := clientOn(t, node)
		s, err := New(client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add("job", gocron.CronJob("* * * * *", false),
			func(context.Context, Tick) error { return nil }); err != nil {
			t.Fatal(err)
		}
		s.Start()
		asked := func(d time.Duration) int { // the node's time alone, by a PING
			before := node.Count("ping")
			time.Sleep(d)
			return node.Count("ping") - before
		}
		asked(5 * time.Minute) // at first there was no tick yet
		if n := asked(time.Hour); n != 0 {
			t.Errorf("with a tick a minute the nodes were asked %d times an hour, want never", n)
		}
		if err := s.Remove("job"); err != nil {
			t.Fatal(err)
		}
		if n := asked(time.Hour); n < 59 {
			t.Errorf("without ticks the nodes were asked %d times an hour, want every minute", n)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The nodes are down at Start, and the replica's clock is ahead: once they are heard of, timers
// that were set by the wrong clock keep to the right one.
func TestTimersAreSetAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 5*time.Second)
		var fired atomic.Int64
		f.nodes.Node(0).Cut()
		f.nodes.Node(1).Cut()
		r.Start()
		began := time.Now()
		r.clock.AfterFunc(90*time.Second, func() { fired.Store(int64(time.Since(began))) })
		stopped := r.clock.AfterFunc(90*time.Second, func() { t.Error("a stopped timer fired") })
		f.nodes.Node(0).Heal()
		f.nodes.Node(1).Heal()
		time.Sleep(80 * time.Second)
		if !stopped.Stop() || stopped.Stop() {
			t.Error("Stop of a timer that was pending, and again: want true, false")
		}
		time.Sleep(time.Minute)
		after := time.Duration(fired.Load())
		if late := (after - 95*time.Second).Abs(); late > 10*time.Millisecond {
			t.Errorf("fired after %v, want 95s: 90 by the clock that was 5 s ahead", after)
		}
		r.stop()
	})
}

func TestTimersCanBeReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		var fired atomic.Int64
		timer := r.clock.AfterFunc(time.Second, func() { fired.Add(1) })
		time.Sleep(500 * time.Millisecond)
		if !timer.Reset(time.Second) {
			t.Error("Reset of a pending timer: got false")
		}
		time.Sleep(1100 * time.Millisecond)
		if fired.Load() != 1 || timer.Reset(time.Second) {
			t.Errorf("fired %d times, want once", fired.Load())
		}
		time.Sleep(2 * time.Second)
		if fired.Load() != 2 || timer.Chan() != nil {
			t.Errorf("fired %d times, want twice", fired.Load())
		}
		r.stop()
	})
}

// Each claim corrects the clock: with thousands of jobs due at once, to set thousands of timers each
// time kept three replicas busy for a second and a half.
func TestTimersAreLeftAloneByAClockThatIsRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		r.Start()
		fired := false
		timer := r.clock.AfterFunc(time.Second, func() { fired = true }).(*clockTimer)
		timer.timer.Stop() // a timer that is set again will fire all the same
		r.clock.answered()
		time.Sleep(2 * time.Second)
		if fired {
			t.Error("the timer was set again, without a reason")
		}
		r.stop()
	})
}
