package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// Faults that users of comparable libraries reported, as tests: here those where a lock was slow,
// stuck, or lost without need.

// redisson/redisson 4456: an acquisition that was interrupted half-way left keys behind, and their
// renewal running.
func TestCaseCancelledAcquisitionLeavesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	moments := []time.Duration{100 * time.Millisecond}
	for range 50 {
		moments = append(moments, time.Duration(random.Int64N(int64(200*time.Millisecond))))
	}
	for _, timeout := range []time.Duration{500 * time.Millisecond, 250 * time.Millisecond} {
		for _, moment := range moments {
			t.Run(fmt.Sprintf("NodeTimeout %v, cancelled after %v", timeout, moment), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) { cancelHalfWay(r, timeout, moment) })
			})
		}
	}
}

// cancelHalfWay cancels while some nodes have set the key and their answers are late: later than
// the node time-out, if that is less than 400 ms.
func cancelHalfWay(r *rig, timeout, moment time.Duration) {
	u := r.user(redlock.Config{TTL: 2 * time.Second, NodeTimeout: timeout})
	r.warm(u)
	for i, n := range r.nodes {
		n.Faults().DelayRequests(fakenode.Fixed(time.Duration(i) * 20 * time.Millisecond))
	}
	slow(400*time.Millisecond, r.nodes[2:]...)
	ctx, cancel := context.WithCancel(r.Context())
	time.AfterFunc(moment, cancel)
	began := time.Now()
	_, err := u.Lock(ctx, "k")
	r.wantIs(err, redlock.ErrNoQuorum, context.Canceled)
	r.wantTook(began, moment, moment)
	time.Sleep(500 * time.Millisecond)
	slow(0, r.nodes...)
	time.Sleep(800 * time.Millisecond) // long before the TTL
	r.wantKeys("k", 0)
	if n := u.Kept(); n != 0 {
		r.Errorf("%d locks are looked after, want none", n)
	}
}

// redisson/redisson 3194, 3712: after a loss the next lock of the same name by the same process was
// taken but never renewed.
func TestCaseALockAfterALostOneIsRenewed(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		var told diary
		a := r.user(redlock.Config{TTL: time.Second, Observer: told.observer()})
		b := r.user(redlock.Config{TTL: time.Second})
		first := r.take(a, "k")
		a.cut(true, 0, 1, 2, 3, 4)
		<-first.Lost()
		a.cut(false, 0, 1, 2, 3, 4)
		second, err := a.Lock(r.within(10*time.Second), "k")
		if err != nil {
			t.Fatal(err)
		}
		rival := make(chan error, 1)
		go func() {
			_, err := b.Lock(r.within(4*time.Second), "k")
			rival <- err
		}()
		r.wantIs(<-rival, redlock.ErrHeld, context.DeadlineExceeded)
		r.wantHeld(second)
		if n := len(told.losses()); n != 1 {
			t.Errorf("told %d losses, want 1", n)
		}
	})
}

// redisson/redisson 775; linagora/cozy-stack 4911: one failed renewal ended renewing for good.
func TestCaseAFailedRenewalIsRetriedWhileTheValidityLasts(t *testing.T) {
	t.Parallel()
	for fault, set := range map[string]func(n *fakenode.Node, on bool){
		"connections refused": func(n *fakenode.Node, on bool) { n.Faults().Down(on) },
		"packets swallowed":   func(n *fakenode.Node, on bool) { n.Faults().Partition(on) },
		"errors answered": func(n *fakenode.Node, on bool) {
			n.Refuse(map[bool]string{true: "LOADING Redis is loading the dataset in memory"}[on])
		},
	} {
		t.Run(fault+", then healed", func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				var told diary
				u := r.user(redlock.Config{TTL: 3 * time.Second, Observer: told.observer()})
				l := r.take(u, "k")
				time.Sleep(700 * time.Millisecond)
				for _, n := range r.nodes[:3] {
					set(n, true)
				}
				time.Sleep(700 * time.Millisecond)
				for _, n := range r.nodes[:3] {
					set(n, false)
				}
				time.Sleep(time.Minute)
				r.wantHeld(l)
				if n := len(told.losses()); n != 0 {
					t.Errorf("told %d losses, want none", n)
				}
			})
		})
		t.Run(fault+" for good", func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				var told diary
				u := r.user(redlock.Config{TTL: 3 * time.Second, Observer: told.observer()})
				l := r.take(u, "k")
				for _, n := range r.nodes[:3] {
					set(n, true)
				}
				ends := l.Until()
				<-l.Lost()
				if now := time.Now(); now.After(ends) {
					t.Errorf("lost at %v, after the deadline at %v", now, ends)
				}
				time.Sleep(time.Minute)
				if n := len(told.losses()); n != 1 {
					t.Errorf("told %d losses, want 1", n)
				}
			})
		})
	}
}

// redis/rueidis 923: each renewal was timed from the last wake-up, so small delays added up.
func TestCaseLagOfRenewalsDoesNotAddUp(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		const ttl, renewals = 3 * time.Second, 500
		var tried atomic.Int64
		u := r.user(redlock.Config{TTL: ttl, Observer: &redlock.Observer{
			Round: func(x redlock.Round) {
				if x.Op == "extend" {
					tried.Add(1)
				}
			}}})
		l := r.take(u, "k")
		// Late timers, as seen from the clock: it runs ahead a little between any two looks.
		slow(90*time.Millisecond, r.nodes...)
		began := time.Now()
		for time.Since(began) < renewals*ttl/3 {
			time.Sleep(ttl / 3)
			if left := l.Remaining(); left < ttl/2 {
				t.Fatalf("after %v: %v remaining, want a second chance", time.Since(began), left)
			}
		}
		if n := tried.Load(); n < renewals-2 || n > renewals+2 {
			t.Errorf("%d renewals in the time of %d", n, renewals)
		}
		r.wantHeld(l)
	})
}

// kalbasit/ncps 913; blnkfinance/blnk 355: unlock used the request's context, and after a cancel
// nothing was released till the TTL.
func TestCaseUnlockWorksWithADeadContext(t *testing.T) {
	t.Parallel()
	for _, hanging := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(hanging, " nodes hang"), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				u := r.user(redlock.Config{})
				ctx, cancel := context.WithCancel(r.Context())
				l, err := u.Lock(ctx, "k")
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for _, n := range r.nodes[:hanging] {
					n.Pause()
				}
				cancel()
				began := time.Now()
				r.wantIs(l.Unlock(ctx))
				r.wantTook(began, 0, 250*time.Millisecond)
				synctest.Wait()
				r.wantKeys("k", hanging)
				for _, n := range r.nodes[:hanging] {
					n.Resume()
				}
				time.Sleep(2 * time.Second)
				r.wantKeys("k", 0)
			})
		})
	}
	t.Run("a majority hangs: bounded, and repeatable", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k")
			for _, n := range r.nodes[:3] {
				n.Pause()
			}
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			began := time.Now()
			r.wantIs(l.Unlock(ctx), redlock.ErrNoQuorum)
			r.wantTook(began, 0, 500*time.Millisecond)
			for _, n := range r.nodes[:3] {
				n.Resume()
			}
			time.Sleep(time.Second)
			r.wantIs(l.Unlock(ctx))
			r.wantKeys("k", 0)
		})
	})
}

// leandromoreira/redlock-rb 60, 129; mike-marcacci/node-redlock 262; redisson/redisson 1636;
// go-redsync/redsync 140: with a minority down, acquire raised an error or became slow, and unlock
// waited for the dead.
func TestCaseADeadMinorityCostsNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*fakenode.Node){
		"refuses":          func(n *fakenode.Node) { n.Faults().Down(true) },
		"swallows packets": func(n *fakenode.Node) { n.Faults().Partition(true) },
		"is frozen":        func(n *fakenode.Node) { n.Pause() },
		"answers errors":   func(n *fakenode.Node) { n.Refuse("MISCONF Redis is configured to save RDB") },
	}
	for name, fault := range faults {
		for nodes, dead := range map[int]int{3: 1, 5: 2} {
			t.Run(fmt.Sprintf("%d of %d %s", dead, nodes, name), func(t *testing.T) {
				t.Parallel()
				inBubble(t, nodes, func(r *rig) {
					u := r.user(redlock.Config{})
					r.warm(u)
					for _, n := range r.nodes[:dead] {
						fault(n)
					}
					slow(2*time.Millisecond, r.nodes...)
					for range 100 {
						began := time.Now()
						l := r.take(u, "k")
						r.wantIs(l.Unlock(r.Context()))
						r.wantTook(began, 0, 4*time.Millisecond)
						time.Sleep(time.Millisecond)
					}
				})
			})
		}
	}
}

// erpc/erpc 1113; redis/go-redis 2145, 2641: a client that ignores the context's deadline made
// calls last for many seconds when servers were frozen.
func TestCaseCallsAreBoundedWhateverTheClientsDo(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		l := r.take(u, "held")
		for _, n := range r.nodes[:3] {
			n.Faults().IgnoreDeadlines(time.Hour)
			n.Pause()
		}
		began := time.Now()
		_, err := u.TryLock(r.within(300*time.Millisecond), "k")
		r.wantIs(err, redlock.ErrNoQuorum)
		r.wantTook(began, 0, 300*time.Millisecond)
		began = time.Now()
		r.wantIs(l.Unlock(r.Context()), redlock.ErrNoQuorum)
		r.wantTook(began, 0, 500*time.Millisecond)
		for range 1000 {
			began = time.Now()
			r.wantIs(r.try(u, "k"), redlock.ErrNoQuorum)
			r.wantTook(began, 0, 500*time.Millisecond)
		}
		began = time.Now()
		u.Close()
		r.wantTook(began, 0, time.Second)
		for _, n := range r.nodes {
			n.Resume()
		}
		time.Sleep(2 * time.Hour) // what hangs in the clients comes back
	})
}

// miintto/redis-lock-py 3; redisson/redisson 5070: the release fell between the failed try and the
// subscription, so the waiter slept until the time-out.
func TestCaseAReleaseIsNeverMissed(t *testing.T) {
	t.Parallel()
	t.Run("between the refusal and the subscription", func(t *testing.T) {
		t.Parallel()
		for _, gap := range []time.Duration{0, 1, time.Microsecond, time.Millisecond,
			5 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond} {
			t.Run(fmt.Sprint("unlocked ", gap, " after it"), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) {
					a, b := r.user(redlock.Config{TTL: 30 * time.Second}), r.user(redlock.Config{})
					r.warm(b)
					l := r.take(a, "k")
					for _, link := range b.links {
						link.Faults().DelayRequests(fakenode.Fixed(10 * time.Millisecond))
					}
					var once sync.Once
					r.nodes[2].OnExecuted(func(x fakenode.Executed) {
						if x.Script == "acquire" && x.Reply[0] == '-' {
							once.Do(func() {
								time.AfterFunc(gap, func() { r.wantIs(l.Unlock(context.Background())) })
							})
						}
					})
					began := time.Now()
					if _, err := b.Lock(r.within(20*time.Second), "k"); err != nil {
						t.Fatal(err)
					}
					r.wantTook(began, 0, 100*time.Millisecond)
				})
			})
		}
	})
	t.Run("the subscriptions broken before it", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a, b := r.user(redlock.Config{TTL: 30 * time.Second}), r.user(redlock.Config{})
			l := r.take(a, "k")
			won := make(chan time.Time)
			go func() {
				if _, err := b.Lock(r.Context(), "k"); err != nil {
					t.Error(err)
				}
				won <- time.Now()
			}()
			time.Sleep(100 * time.Millisecond)
			for _, n := range r.nodes {
				n.Faults().DelayRequests(fakenode.Fixed(20 * time.Millisecond)) // resubscribing takes time
				n.BreakListeners()
			}
			r.wantIs(l.Unlock(r.Context()))
			freed := time.Now()
			if took := (<-won).Sub(freed); took > 200*time.Millisecond {
				t.Errorf("the waiter won %v after the release", took)
			}
		})
	})
	t.Run("heard from a bare majority", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a, b := r.user(redlock.Config{TTL: 30 * time.Second}), r.user(redlock.Config{})
			r.warm(b)
			l := r.take(a, "k")
			for _, n := range r.nodes[3:] {
				n.Faults().LosePublished(fakenode.Always)
			}
			won := make(chan time.Time)
			go func() {
				if _, err := b.Lock(r.Context(), "k"); err != nil {
					t.Error(err)
				}
				won <- time.Now()
			}()
			time.Sleep(100 * time.Millisecond)
			r.wantIs(l.Unlock(r.Context()))
			freed := time.Now()
			if took := (<-won).Sub(freed); took > 50*time.Millisecond {
				t.Errorf("the waiter won %v after the release", took)
			}
		})
	})
	t.Run("no message arrives at all", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a, b := r.user(redlock.Config{TTL: 30 * time.Second}), r.user(redlock.Config{})
			l := r.take(a, "k")
			for _, n := range r.nodes {
				n.Faults().LosePublished(fakenode.Always)
			}
			time.AfterFunc(100*time.Millisecond, func() { r.wantIs(l.Unlock(context.Background())) })
			began := time.Now()
			if _, err := b.Lock(r.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			r.wantTook(began, 0, 1100*time.Millisecond) // the slow poll
		})
	})
}

// redis/rueidis 602, 457; redisson/redisson 2575: waiters burned a CPU, and subscriptions of
// finished locks stayed.
func TestCaseWaitersCostLittleAndLeaveNothing(t *testing.T) {
	t.Parallel()
	t.Run("fifty waiters ask as one", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
			r.take(a, "k", redlock.WithMaxHold(5*time.Second))
			r.warm(b)
			before := r.nodes[0].Count("acquire")
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					_, err := b.Lock(r.within(4*time.Second), "k")
					r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
				})
			}
			all.Wait()
			synctest.Wait()
			if n := r.nodes[0].Count("acquire") - before; n > 10 {
				t.Errorf("node 0 was asked %d times in 4s, want at most 10", n)
			}
			if n := b.Lines(); n != 0 {
				t.Errorf("%d names are waited for, want none", n)
			}
		})
	})
	t.Run("a thousand names, half of them given up", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
			r.warm(b)
			var all sync.WaitGroup
			for i := range 1000 {
				name := fmt.Sprint("k", i)
				l, err := a.TryLock(r.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					if i%2 == 0 {
						_, err := b.Lock(r.within(time.Second), name)
						r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
						r.wantIs(l.Unlock(r.Context()))
						return
					}
					time.AfterFunc(500*time.Millisecond, func() { l.Unlock(context.Background()) })
					lb, err := b.Lock(r.Context(), name)
					if err != nil {
						t.Error(err)
						return
					}
					r.wantIs(lb.Unlock(r.Context()))
				})
			}
			all.Wait()
			time.Sleep(3 * time.Second) // subscriptions outlast their waiters by two
			synctest.Wait()
			for i, n := range r.nodes {
				if left := n.Listeners(); len(left) != 0 {
					t.Errorf("node %d: %d channels are subscribed, want none", i, len(left))
				}
			}
			if n := b.Lines(); n != 0 {
				t.Errorf("%d names are waited for, want none", n)
			}
			if n := a.Kept() + b.Kept(); n != 0 {
				t.Errorf("%d locks are looked after, want none", n)
			}
		})
	})
}

// zoolutions/sidekiq-unique-jobs 379, 861: a killed process left locks without lifetime.
func TestCaseEveryKeyHasALifetimeAtEveryMoment(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		inBubble(t, 3, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 5))
			a := r.user(redlock.Config{TTL: time.Second})
			r.warm(a)
			for i, n := range r.nodes {
				n.Faults().DelayRequests(fakenode.Jitter(seed+uint64(i), 0, 20*time.Millisecond))
				n.OnExecuted(func(x fakenode.Executed) {
					for _, key := range x.Node.Keys() {
						if key.Left == fakenode.NoEnd && key.Name != "ql:node" {
							t.Errorf("after %s: %q has no end", x.Script, key.Name)
						}
					}
				})
			}
			go func() {
				l, err := a.Lock(r.Context(), "k")
				if err != nil {
					return
				}
				_ = l.Extend(r.Context())
				time.Sleep(400 * time.Millisecond) // a renewal
				_ = l.Unlock(r.Context())
			}()
			time.Sleep(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
			a.cut(true, 0, 1, 2) // killed: nothing of it arrives any more
			b := r.user(redlock.Config{TTL: time.Second})
			began := time.Now()
			if _, err := b.Lock(r.within(10*time.Second), "k"); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			r.wantTook(began, 0, 1200*time.Millisecond)
			a.cut(false, 0, 1, 2)
		})
	}
}
