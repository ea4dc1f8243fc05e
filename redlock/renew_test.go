package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// However slow an Observer is, contexts end in time: also when nodes that are known to fail answer
// on the goroutine that looks after all locks.
func TestASlowObserverDelaysNoLoss(t *testing.T) {
	t.Parallel()
	slowly := func() { time.Sleep(time.Minute) }
	for name, observer := range map[string]*redlock.Observer{
		"of rounds": {Round: func(x redlock.Round) {
			if x.Op == "extend" {
				slowly()
			}
		}},
		"of losses": {Lost: func(redlock.Event) { slowly() }},
		"of nodes":  {Node: func(redlock.NodeChange) { slowly() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{Observer: observer})
				var locks []*redlock.Lock
				var mu sync.Mutex
				ended := map[string]time.Time{}
				for i := range 20 {
					l := r.take(u, fmt.Sprint("k", i))
					locks = append(locks, l)
					context.AfterFunc(l.Context(), func() {
						mu.Lock()
						defer mu.Unlock()
						ended[l.Name()] = time.Now()
					})
				}
				until := locks[0].Until()
				for _, n := range r.nodes {
					n.Faults().Down(true)
				}
				_ = r.try(u, "by which it is known that they fail")
				time.Sleep(time.Until(until) + time.Millisecond)
				synctest.Wait()
				mu.Lock()
				for _, l := range locks {
					if at, over := ended[l.Name()]; !over || at.After(until) {
						t.Errorf("%s: context ended: %v, at %v; want by %v", l.Name(), over, at, until)
					}
				}
				mu.Unlock()
				time.Sleep(time.Hour) // all callbacks return
			})
		})
	}
}

func TestRenewalKeepsLocksWithoutGoroutines(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		var locks []*redlock.Lock
		before := runtime.NumGoroutine()
		for i := range 2000 {
			l, err := u.TryLock(r.Context(), fmt.Sprint("k", i))
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, l)
		}
		synctest.Wait()
		// Tests run beside this one: what matters is that it is not one for each lock.
		if now := runtime.NumGoroutine(); now > before+1000 {
			t.Errorf("%d goroutines for 2000 locks", now-before)
		}
		if n := u.Kept(); n != 2000 {
			t.Errorf("%d locks are looked after, want 2000", n)
		}
		time.Sleep(time.Minute)
		for _, l := range locks {
			r.wantHeld(l)
			r.wantIs(l.Unlock(r.Context()))
		}
		if n := u.Kept(); n != 0 {
			t.Errorf("%d locks are looked after, want none", n)
		}
	})
}

func TestRenewEveryIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cfg   redlock.Config
		opts  []redlock.LockOption
		every time.Duration
	}{
		{"default", redlock.Config{TTL: 9 * time.Second}, nil, 3 * time.Second},
		{"as said", redlock.Config{TTL: 9 * time.Second, RenewEvery: time.Second}, nil, time.Second},
		{"a third of WithTTL", redlock.Config{TTL: 9 * time.Second},
			[]redlock.LockOption{redlock.WithTTL(6 * time.Second)}, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				var mu sync.Mutex
				var at []time.Time
				c.cfg.Observer = &redlock.Observer{Round: func(x redlock.Round) {
					if x.Op == "extend" {
						mu.Lock()
						defer mu.Unlock()
						at = append(at, time.Now())
					}
				}}
				began := time.Now()
				r.take(r.user(c.cfg), "k", c.opts...)
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				for i, now := range at {
					if want := began.Add(time.Duration(i+1) * c.every); !now.Equal(want) {
						t.Fatalf("renewal %d at %v, want %v", i, now.Sub(began), want.Sub(began))
					}
				}
				if len(at) < int(time.Minute/c.every)-1 {
					t.Errorf("%d renewals in a minute", len(at))
				}
			})
		})
	}
}

func TestWithoutRenewalItEndsUnlessExtended(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		l := r.take(u, "k", redlock.WithoutRenewal())
		for range 5 {
			time.Sleep(9 * time.Second)
			r.wantHeld(l)
			r.wantIs(l.Extend(r.Context()))
			if left := l.Remaining(); left != 9898*time.Millisecond {
				t.Errorf("%v remaining after an extend, want the full 9.898s", left)
			}
		}
		began := time.Now()
		<-l.Lost()
		r.wantTook(began, 9898*time.Millisecond, 9898*time.Millisecond)
		r.wantLost(l)
	})
}

// WithMaxHold ends the context before the keys, and tells it as a loss.
func TestMaxHoldEndsTheContextBeforeTheLock(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{500 * time.Millisecond, 10 * time.Second, 25 * time.Second, time.Minute} {
		t.Run(hold.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				var told diary
				a := r.user(redlock.Config{Observer: told.observer()})
				b := r.user(redlock.Config{})
				r.warm(a)
				r.warm(b)
				began := time.Now()
				l := r.take(a, "k", redlock.WithMaxHold(hold))
				rival := make(chan time.Time, 1)
				go func() {
					if _, err := b.Lock(r.Context(), "k"); err != nil {
						t.Error(err)
					}
					rival <- time.Now()
				}()
				<-l.Context().Done()
				r.wantTook(began, hold*9/10-200*time.Millisecond, hold-2*time.Millisecond)
				r.wantLost(l)
				ended := time.Now()
				won := <-rival
				if !won.After(ended) || won.Sub(began) > hold+50*time.Millisecond {
					t.Errorf("the rival won %v after the start, want after %v and by %v",
						won.Sub(began), ended.Sub(began), hold)
				}
				synctest.Wait()
				if n := len(told.losses()); n != 1 {
					t.Errorf("told %d losses, want 1", n)
				}
				r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
			})
		})
	}
}

// A loss is told once, with what was known of its cause.
func TestALossIsToldOnceWithItsCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happen func(r *rig, u *user)
		says   string
	}{
		"keys gone": {func(r *rig, _ *user) {
			for _, n := range r.nodes {
				n.Delete("k")
			}
		}, "its keys are gone"},
		"a rival's": {func(r *rig, _ *user) {
			r.holds("k", "ql1:B/1", time.Minute)
		}, "another has it"},
		"cut off":   {func(_ *rig, u *user) { u.cut(true, 0, 1, 2) }, "its validity is over"},
		"suspended": {func(_ *rig, u *user) { u.clock.stepWall(time.Minute) }, "its validity is over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				var told diary
				var book logbook
				u := r.user(redlock.Config{Observer: told.observer(), Logger: book.logger()})
				l := r.take(u, "k")
				ctx := l.Context()
				lost := l.Lost()
				c.happen(r, u)
				<-ctx.Done()
				<-lost
				time.Sleep(time.Minute)
				r.wantLost(l)
				losses := told.losses()
				if len(losses) != 1 || losses[0].Name != "k" || losses[0].Token != l.Token() ||
					losses[0].Held <= 0 {
					t.Fatalf("told %+v, want one loss", losses)
				}
				r.wantIs(losses[0].Err, redlock.ErrLost)
				for what, text := range map[string]string{
					"the observer": fmt.Sprint(losses[0].Err), "the log": book.String(),
					"the context": fmt.Sprint(context.Cause(ctx)),
				} {
					if !contains(text, c.says) {
						t.Errorf("%s was told %q, want it to say %q", what, text, c.says)
					}
				}
			})
		})
	}
}

// Extend heals nodes that miss the key, and what it planted counts only from the next time on.
func TestExtendHealsAndNeverCountsWhatItPlants(t *testing.T) {
	t.Parallel()
	t.Run("missing keys come back", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k")
			for _, n := range r.nodes[:2] {
				n.Delete("k")
			}
			r.wantIs(l.Extend(r.Context()))
			synctest.Wait()
			r.wantKeys("k", 5)
			for _, n := range r.nodes[2:4] {
				n.Delete("k")
			}
			r.wantIs(l.Extend(r.Context()))
		})
	})
	t.Run("a minority that is left is a loss, whatever could be planted", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k")
			for _, n := range r.nodes[:3] {
				n.Delete("k")
			}
			r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
			synctest.Wait()
			r.wantKeys("k", 0)
		})
	})
	t.Run("a stranger's key stays", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k")
			r.nodes[0].Set("k", "stranger", time.Hour)
			time.Sleep(time.Minute)
			r.wantHeld(l)
			if text, _ := r.nodes[0].Get("k"); text != "stranger" {
				t.Errorf("got %q, want the stranger's", text)
			}
		})
	})
	t.Run("nothing is planted after an unlock", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k")
			r.nodes[0].Delete("k")
			slow(50*time.Millisecond, r.nodes...)
			go func() { _ = l.Extend(r.Context()) }()
			time.Sleep(20 * time.Millisecond)
			r.wantIs(l.Unlock(r.Context()))
			time.Sleep(time.Second)
			r.wantKeys("k", 0)
		})
	})
	t.Run("a key is never shortened", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k", redlock.WithMaxHold(12*time.Second))
			for _, n := range r.nodes {
				n.Set("k", mustGet(n.Get("k")), time.Hour)
			}
			time.Sleep(5 * time.Second)
			_ = l.Extend(r.Context())
			for _, n := range r.nodes {
				if left := n.TTL("k"); left < 59*time.Minute {
					t.Errorf("%v: %v left, want the hour", n, left)
				}
			}
			r.wantIs(l.Unlock(r.Context()))
		})
	})
}

func mustGet(text string, there bool) string {
	if !there {
		panic("no such key")
	}
	return text
}

func TestExtendAtTheEndOfMaxHold(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		l := r.take(r.user(redlock.Config{}), "k", redlock.WithMaxHold(11*time.Second), redlock.WithoutRenewal())
		time.Sleep(9 * time.Second)
		r.wantIs(l.Extend(r.Context()))
		if left := l.Remaining(); left > 2*time.Second {
			t.Errorf("%v remaining, beyond WithMaxHold", left)
		}
		r.wantIs(l.Extend(r.Context())) // again, with nothing to gain
		r.wantHeld(l)
		<-l.Lost()
		if cause := context.Cause(l.Context()); !contains(fmt.Sprint(cause), "WithMaxHold of 11s") {
			t.Errorf("cause %v, want WithMaxHold named", cause)
		}
	})
}

func TestContextsOfLocks(t *testing.T) {
	t.Parallel()
	type key struct{}
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		parent, cancel := context.WithTimeout(context.WithValue(r.Context(), key{}, "value"), time.Minute)
		l, err := u.Lock(parent, "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx := l.Context()
		cancel()
		if ctx.Err() != nil {
			t.Error("it ended with the caller's context")
		}
		if got := ctx.Value(key{}); got != "value" {
			t.Errorf("value %v, want the caller's", got)
		}
		if _, has := ctx.Deadline(); has {
			t.Error("it has a deadline")
		}
		if !contains(fmt.Sprint(ctx), "context of lock \"k\"") || l.Context() != ctx {
			t.Errorf("got %v", ctx)
		}
		child, stop := context.WithCancel(ctx)
		defer stop()
		r.wantIs(l.Unlock(parent))
		<-child.Done()
		r.wantIs(context.Cause(child), redlock.ErrNotHeld)
		if ctx.Err() != context.Canceled || !errors.Is(l.Context().Err(), context.Canceled) {
			t.Errorf("Err %v, want context.Canceled", ctx.Err())
		}
		select {
		case <-l.Lost():
			t.Error("an unlock is told as a loss")
		default:
		}
		// Asked for after its end for the first time.
		l2 := r.take(u, "k2")
		r.wantIs(l2.Unlock(r.Context()))
		r.wantIs(context.Cause(l2.Context()), redlock.ErrNotHeld)
		l3 := r.take(u, "k3")
		r.wantIs(u.Close())
		r.wantIs(context.Cause(l3.Context()), redlock.ErrClosed)
		if l3.Remaining() > 0 {
			t.Errorf("%v remaining after Close", l3.Remaining())
		}
	})
}
