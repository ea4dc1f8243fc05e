package redlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// TestMinHoldIsShortenedInOneStep: at no moment is the name free before its time, and rivals get it
// right after that.
func TestMinHoldIsShortenedInOneStep(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{TTL: time.Minute}), r.user(redlock.Config{TTL: time.Minute})
		r.warm(b)
		began := time.Now()
		l := r.take(a, "k", redlock.WithMinHold(10*time.Second))
		stop := r.rival(b, "k")
		time.Sleep(time.Second)
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		for _, n := range r.nodes {
			if left := n.TTL("k"); left != 9*time.Second {
				r.Errorf("%s: the key has %v left, want the 9 s that are left of WithMinHold", n.Name(), left)
			}
		}
		if l.Remaining() > 0 || l.Context().Err() == nil {
			r.Error("the lock is usable after Unlock")
		}
		for range 3 { // repeated, also later: nil, and nothing is prolonged or freed
			r.wantIs(l.Unlock(r.Context()))
			time.Sleep(time.Second)
		}
		if left := r.nodes[0].TTL("k"); left != 6*time.Second {
			r.Errorf("three seconds later the key has %v left, want 6 s", left)
		}
		time.Sleep(time.Until(began.Add(10*time.Second - time.Millisecond)))
		if wins := stop(); wins > 0 {
			r.Errorf("a rival won %d times within WithMinHold", wins)
		}
		time.Sleep(2 * time.Millisecond)
		r.wantIs(r.try(b, "k"))
	})
}

func TestMinHoldThatIsOverFreesAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		l := r.take(a, "k", redlock.WithMinHold(3*time.Second))
		time.Sleep(time.Minute) // renewed meanwhile
		r.wantHeld(l)
		r.wantIs(l.Unlock(r.Context()))
		r.wantIs(r.try(b, "k"))
	})
}

// TestMinHoldWaitersAreTold: they know the new moment and neither come early nor late.
func TestMinHoldWaitersAreTold(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{TTL: time.Minute}), r.user(redlock.Config{TTL: time.Minute})
		began := time.Now()
		l := r.take(a, "k", redlock.WithMinHold(5*time.Second))
		got := make(chan time.Duration)
		go func() {
			if _, err := b.Lock(r.Context(), "k"); err != nil {
				r.Error(err)
			}
			got <- time.Since(began)
		}()
		time.Sleep(500 * time.Millisecond)
		r.wantIs(l.Unlock(r.Context()))
		if took := <-got; took < 5*time.Second || took > 5010*time.Millisecond {
			r.Errorf("the waiter got it after %v, want 5 s", took)
		}
	})
}

func TestMinHoldAfterAFailedUnlock(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{TTL: time.Minute}), r.user(redlock.Config{TTL: time.Minute})
		began := time.Now()
		l := r.take(a, "k", redlock.WithMinHold(10*time.Second))
		a.cut(true, 0, 1)
		r.wantIs(l.Unlock(r.Context()), redlock.ErrNoQuorum)
		time.Sleep(time.Second)
		a.cut(false, 0, 1)
		time.Sleep(time.Second)
		r.wantIs(l.Unlock(r.Context()))
		r.wantIs(r.try(b, "k"), redlock.ErrHeld)
		time.Sleep(time.Until(began.Add(9900 * time.Millisecond)))
		r.wantIs(r.try(b, "k"), redlock.ErrHeld)
		// What was repeated in the background counts from when it arrived, two seconds later.
		time.Sleep(time.Until(began.Add(13 * time.Second)))
		r.wantIs(r.try(b, "k"))
	})
}

func TestMinHoldFreesAtCloseAndAfterALoss(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.take(a, "k", redlock.WithMinHold(5*time.Second))
		r.wantIs(a.Close())
		r.wantIs(r.try(b, "k"))
	})
}

func TestMinHoldBounds(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{TTL: 10 * time.Second, MaxTTL: time.Minute})
		for _, opts := range [][]redlock.LockOption{
			{redlock.WithMinHold(0)}, {redlock.WithMinHold(-time.Second)},
			{redlock.WithMinHold(10*time.Second + 1)},
			{redlock.WithMinHold(5 * time.Second), redlock.WithTTL(4 * time.Second)},
		} {
			r.wantIs(r.try(u, "k", opts...), redlock.ErrInvalid)
		}
		l := r.take(u, "k", redlock.WithTTL(20*time.Second), redlock.WithMinHold(20*time.Second))
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		if left := r.nodes[0].TTL("k"); left != 20*time.Second {
			r.Errorf("the key has %v left, want all of its 20 s", left)
		}
		// Parts of a millisecond are rounded up: never free too early.
		l = r.take(u, "k2", redlock.WithMinHold(1500*time.Microsecond))
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		if left := fmt.Sprint(r.nodes[0].TTL("k2")); left != "2ms" {
			r.Errorf("the key has %s left, want 2ms", left)
		}
	})
}
