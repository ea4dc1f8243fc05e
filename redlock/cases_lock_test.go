package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// Faults that users of comparable libraries reported, as tests: here those where a lock was not
// one. Each names the reports, as repository and number.

// SPSCommerce/redlock-py 3: a sign slip added the drift allowance to the validity.
func TestCaseValidityIsShortenedByElapsedAndDrift(t *testing.T) {
	t.Parallel()
	t.Run("TTL 1s, a round of 100ms", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{TTL: time.Second})
			r.warm(u)
			slow(100*time.Millisecond, r.nodes...)
			l := r.take(u, "k", redlock.WithoutRenewal())
			if got, want := l.Remaining(), 888*time.Millisecond; got != want {
				t.Errorf("remaining %v, want 1s - 100ms - (1%% + 2ms) = %v", got, want)
			}
		})
	})
	t.Run("never more with more drift or more elapsed", func(t *testing.T) {
		t.Parallel()
		random := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			ttl := 20*time.Millisecond + time.Duration(random.Int64N(int64(time.Minute)))
			took := time.Duration(random.Int64N(int64(ttl / 5)))
			drift := 0.001 + random.Float64()/10
			remaining := func(took time.Duration, drift float64) (left time.Duration) {
				inBubble(t, 3, func(r *rig) {
					u := r.user(redlock.Config{TTL: ttl, NodeTimeout: ttl / 4, DriftFactor: drift})
					r.warm(u)
					slow(took, r.nodes...)
					left = r.take(u, "k", redlock.WithoutRenewal()).Remaining()
				})
				return left
			}
			left := remaining(took, drift)
			if left > ttl-took-time.Duration(float64(ttl)*drift) {
				t.Errorf("TTL %v, elapsed %v, drift %v: %v remaining", ttl, took, drift, left)
			}
			if more := remaining(took+ttl/100, drift); more >= left {
				t.Errorf("TTL %v: more elapsed left %v, less %v", ttl, more, left)
			}
			if more := remaining(took, drift*1.5); more >= left {
				t.Errorf("TTL %v: more drift left %v, less %v", ttl, more, left)
			}
		}
	})
}

// go-redsync/redsync 72: "still valid?" waited for a slow node, and said yes although the lock had
// run out meanwhile.
func TestCaseValidityIsJudgedWhenTheAnswerIsReturned(t *testing.T) {
	t.Parallel()
	t.Run("an extend that ends after the validity is a loss", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{TTL: 300 * time.Millisecond})
			l := r.take(u, "k", redlock.WithoutRenewal())
			time.Sleep(250 * time.Millisecond)
			slow(60*time.Millisecond, r.nodes[:4]...)
			slow(time.Second, r.nodes[4])
			r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
			r.wantLost(l)
			time.Sleep(2 * time.Second)
			r.wantKeys("k", 0)
		})
	})
	t.Run("a question takes no time", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{TTL: 300 * time.Millisecond})
			l := r.take(u, "k", redlock.WithoutRenewal())
			time.Sleep(250 * time.Millisecond)
			slow(time.Second, r.nodes...)
			began := time.Now()
			r.wantHeld(l)
			r.wantTook(began, 0, 0)
			time.Sleep(45 * time.Millisecond)
			r.wantLost(l)
		})
	})
	t.Run("a win reached after the validity is none, and its keys are released", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{TTL: 300 * time.Millisecond})
			r.warm(u)
			for _, n := range r.nodes {
				// The machine is suspended while the answers are on their way.
				n.OnExec(func(script string, _ []string) {
					if script == "acquire" {
						u.clock.stepWall(300 * time.Millisecond)
					}
				})
			}
			r.wantIs(r.try(u, "k"), redlock.ErrNoQuorum)
			synctest.Wait()
			r.wantKeys("k", 0)
		})
	})
}

// samcook/RedLock.net 48 and 93: the renewal timer starved, another process took the lock, and the
// old holder's next renewal succeeded.
func TestCaseStarvedHolderSeesTheLoss(t *testing.T) {
	t.Parallel()
	t.Run("stopped for longer than the TTL", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			var told diary
			a := r.user(redlock.Config{TTL: 300 * time.Millisecond, Observer: told.observer()})
			b := r.user(redlock.Config{TTL: 300 * time.Millisecond})
			l := r.take(a, "k")
			// A stopped process: nothing of it reaches the nodes, and its timers stand still. The
			// latter as a monotonic clock that stands still.
			a.cut(true, 0, 1, 2, 3, 4)
			frozen := time.Until(l.Until())
			time.Sleep(500 * time.Millisecond)
			lb := r.take(b, "k")
			r.wantIs(lb.Unlock(r.Context()))
			a.cut(false, 0, 1, 2, 3, 4)
			if frozen > 300*time.Millisecond {
				t.Errorf("valid for %v, more than the TTL", frozen)
			}
			if err := l.Context().Err(); err == nil {
				t.Error("the context lives after the resume")
			}
			r.wantLost(l)
			r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
			time.Sleep(time.Second)
			r.wantKeys("k", 0)
			if n := len(told.losses()); n != 1 {
				t.Errorf("told %d losses, want 1", n)
			}
		})
	})
	t.Run("suspended: no timer has fired, yet the first look sees it", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a := r.user(redlock.Config{TTL: 300 * time.Millisecond})
			l := r.take(a, "k")
			ctx := l.Context()
			a.clock.stepWall(500 * time.Millisecond)
			if err := ctx.Err(); err == nil {
				t.Error("Err: nil, want an ended context")
			}
			r.wantLost(l)
		})
	})
	t.Run("all keys flushed: lost within one renewal interval", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a := r.user(redlock.Config{TTL: 300 * time.Millisecond})
			l := r.take(a, "k")
			for _, n := range r.nodes {
				n.Delete("k")
			}
			began := time.Now()
			<-l.Lost()
			r.wantTook(began, 0, 100*time.Millisecond)
			time.Sleep(time.Second)
			r.wantKeys("k", 0)
		})
	})
}

// sibson/redbeat 127: a lease was lengthened without an owner check.
func TestCaseExtendNeverProlongsARivalsKey(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		l := r.take(a, "k", redlock.WithoutRenewal())
		for _, n := range r.nodes[:3] {
			n.Set("k", "ql1:B/1", 5*time.Second)
		}
		time.Sleep(time.Second)
		err := l.Extend(r.Context())
		r.wantIs(err, redlock.ErrLost)
		if round := r.round(err); round.Holder != "B" || round.Remaining != 4*time.Second {
			t.Errorf("got holder %q for %v, want B for 4s", round.Holder, round.Remaining)
		}
		r.wantLost(l)
		synctest.Wait()
		for i, n := range r.nodes[:3] {
			if text, _ := n.Get("k"); text != "ql1:B/1" || n.TTL("k") != 4*time.Second {
				t.Errorf("node %d: %q for %v, want B's for 4s", i, text, n.TTL("k"))
			}
		}
		r.wantKeys("k", 3)
	})
}

// rq/rq 1914, 1531: a process that only tried for a lock released it by name at shutdown.
func TestCaseCloseFreesOnlyWhatItHolds(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		l := r.take(a, "k1")
		r.wantIs(r.try(b, "k1"), redlock.ErrHeld)
		r.take(b, "k2")
		r.wantKeys("k2", 5)
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		r.wantKeys("k1", 5)
		r.wantKeys("k2", 0)
		r.wantHeld(l)
		r.wantIs(l.Extend(r.Context()))
	})
}

// redisson/redisson 656, 1292, 1175: with a member held by somebody else, acquisition wasted the
// whole wait on it, or unlock hit the stranger's key.
func TestCaseStrangersOnAMinorityNeitherDelayNorLoseTheirKeys(t *testing.T) {
	t.Parallel()
	positions := [][]int{{0}, {1}, {2}, {3}, {4}}
	for i := range 5 {
		for j := range i {
			positions = append(positions, []int{j, i})
		}
	}
	for _, rivals := range positions {
		t.Run(fmt.Sprint("rival on ", rivals), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				a := r.user(redlock.Config{TTL: 5 * time.Second})
				r.warm(a)
				slow(3*time.Millisecond, r.nodes...)
				for _, i := range rivals {
					r.nodes[i].Set("k", "stranger", time.Hour)
					slow(200*time.Millisecond, r.nodes[i])
				}
				began := time.Now()
				l, err := a.Lock(r.within(500*time.Millisecond), "k")
				if err != nil {
					t.Fatal(err)
				}
				r.wantTook(began, 0, 3*time.Millisecond)
				r.wantIs(l.Unlock(r.Context()))
				r.wantTook(began, 0, 6*time.Millisecond)
				time.Sleep(time.Second)
				r.wantKeys("k", len(rivals))
				for _, i := range rivals {
					text, _ := r.nodes[i].Get("k")
					if left := r.nodes[i].TTL("k"); text != "stranger" || left < 59*time.Minute {
						t.Errorf("node %d: %q for %v, want the stranger's for an hour", i, text, left)
					}
				}
			})
		})
	}
}

// redisson/redisson 2172, 624, 4033: odd pairs of wait and lease gave several owners, or a lock
// that could never be won.
func TestCaseOddPairsOfWaitAndTTL(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{-time.Second, 0, 1, time.Second} {
		for _, ttl := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 10 * time.Second} {
			for _, free := range []bool{true, false} {
				t.Run(fmt.Sprintf("wait=%v/ttl=%v/free=%v", wait, ttl, free), func(t *testing.T) {
					t.Parallel()
					inBubble(t, 3, func(r *rig) { oddPair(r, wait, ttl, free) })
				})
			}
		}
	}
}

func oddPair(r *rig, wait, ttl time.Duration, free bool) {
	if !free {
		r.take(r.user(redlock.Config{}), "k")
	}
	var mu sync.Mutex
	holders, won := 0, 0
	var all sync.WaitGroup
	for range 20 {
		u := r.user(redlock.Config{})
		all.Go(func() {
			ctx, cancel := context.WithTimeout(r.Context(), wait)
			defer cancel()
			l, err := u.Lock(ctx, "k", redlock.WithTTL(ttl))
			switch {
			case ttl == time.Millisecond:
				r.wantIs(err, redlock.ErrInvalid)
				return
			case err != nil && wait <= 0:
				r.wantIs(err, context.DeadlineExceeded)
				return
			case err != nil && !free:
				// With a nanosecond, nobody may have been asked yet.
				if want := redlock.ErrHeld; wait > 1 {
					r.wantIs(err, want, context.DeadlineExceeded)
				}
				return
			case err != nil:
				return
			}
			mu.Lock()
			holders, won = holders+1, won+1
			if holders > 1 || !free {
				r.Errorf("%d holders, free: %v", holders, free)
			}
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			holders--
			mu.Unlock()
			r.wantIs(l.Unlock(r.Context()))
		})
	}
	all.Wait()
	if ttl > time.Millisecond && free && wait == time.Second && won != 20 {
		r.Errorf("%d of 20 contenders got the free lock within a second, want all", won)
	}
}

// A wait of nothing is what TryLock is for: one try, and a free key is won.
func TestCaseNoWaitOnAFreeKeyWins(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		var told diary
		u := r.user(redlock.Config{Observer: told.observer()})
		r.take(u, "k")
		if len(told.round) != 1 {
			t.Errorf("%d rounds, want 1", len(told.round))
		}
	})
}

// redis/redis-py 621: the "run this under the lock" form ran the body when the wait had timed out.
func TestCaseDoNeverRunsWithoutTheLock(t *testing.T) {
	t.Parallel()
	never := func(t *testing.T) func(context.Context, *redlock.Lock) error {
		return func(context.Context, *redlock.Lock) error {
			t.Error("the function was called")
			return nil
		}
	}
	t.Run("held by a rival", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.take(r.user(redlock.Config{}), "k")
			err := r.user(redlock.Config{}).Do(r.within(100*time.Millisecond), "k", never(t))
			r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
		})
	})
	t.Run("all nodes down", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			for _, n := range r.nodes {
				n.Faults().Down(true)
			}
			err := r.user(redlock.Config{}).Do(r.within(100*time.Millisecond), "k", never(t))
			r.wantIs(err, redlock.ErrNoQuorum, context.DeadlineExceeded)
		})
	})
	t.Run("the context cancelled before", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			r.wantIs(r.user(redlock.Config{}).Do(ctx, "k", never(t)), context.Canceled)
			r.wantKeys("k", 0)
		})
	})
}

// valkey-io/valkey 2651: key lifetimes follow the server's wall clock, and a step forward lets all
// locks run out at once.
func TestCaseNodesWhoseClocksAreStepped(t *testing.T) {
	t.Parallel()
	t.Run("one node an hour ahead: still the only holder", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a, b := r.user(redlock.Config{TTL: time.Minute}), r.user(redlock.Config{TTL: time.Minute})
			l := r.take(a, "k")
			r.nodes[3].StepClock(time.Hour)
			r.wantIs(r.try(b, "k"), redlock.ErrHeld)
			time.Sleep(5 * time.Minute)
			r.wantHeld(l)
			r.wantIs(r.try(b, "k"), redlock.ErrHeld)
		})
	})
	t.Run("a majority ahead: the holder learns of it at its next renewal", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a := r.user(redlock.Config{TTL: time.Minute})
			b := r.user(redlock.Config{TTL: time.Minute})
			l := r.take(a, "k")
			for _, n := range r.nodes[:3] {
				n.StepClock(time.Hour)
			}
			began := time.Now()
			<-l.Lost()
			r.wantTook(began, 0, 20*time.Second)
			lb, err := b.Lock(r.within(10*time.Minute), "k")
			if err != nil {
				t.Fatal(err)
			}
			if lb.Token() <= l.Token() {
				t.Errorf("fencing token %d after %d, want a larger one", lb.Token(), l.Token())
			}
		})
	})
	t.Run("one node an hour behind: a dead holder's key there blocks nobody", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
			r.take(a, "k")
			a.cut(true, 0, 1, 2, 3, 4) // dies
			r.nodes[2].StepClock(-time.Hour)
			began := time.Now()
			if _, err := b.Lock(r.within(time.Minute), "k"); err != nil {
				t.Fatal(err)
			}
			// Where the odd node is one of the three that were heard of first, it is the slow poll that
			// finds the lock free.
			r.wantTook(began, 9*time.Second, 20*time.Second)
		})
	})
}

// kubernetes/kubernetes 23731; cilium/cilium 42920; kubernetes/client-go 448: the old leader went
// on, because its stop callback never came or blocked; and a newcomer waited a full lease for a
// record long dead.
func TestCaseTheContextEndsBeforeARivalCanWin(t *testing.T) {
	t.Parallel()
	t.Run("whatever callbacks do", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a := r.user(redlock.Config{Observer: &redlock.Observer{
				Lost: func(redlock.Event) { time.Sleep(30 * time.Second) },
			}})
			b := r.user(redlock.Config{})
			first := r.take(a, "lost before")
			l := r.take(a, "k")
			ended := make(chan time.Time, 1)
			context.AfterFunc(l.Context(), func() { ended <- time.Now() })
			a.cut(true, 0, 1, 2)
			lb, err := b.Lock(r.within(time.Minute), "k")
			if err != nil {
				t.Fatal(err)
			}
			won := time.Now()
			if left := l.Remaining(); left > 0 {
				t.Errorf("%v remaining after the rival won", left)
			}
			synctest.Wait()
			select {
			case at := <-ended:
				if !at.Before(won) {
					t.Errorf("the context ended at %v, the rival won at %v", at, won)
				}
			default:
				t.Error("the rival has won and the context lives")
			}
			if lb.Token() <= l.Token() {
				t.Errorf("fencing token %d after %d, want a larger one", lb.Token(), l.Token())
			}
			r.wantLost(first)
			time.Sleep(2 * time.Minute)
		})
	})
	t.Run("a dead holder's time is over: the first round wins", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			a := r.user(redlock.Config{})
			r.take(a, "k")
			a.cut(true, 0, 1, 2, 3, 4)
			time.Sleep(20 * time.Second)
			var told diary
			b := r.user(redlock.Config{Observer: told.observer()})
			r.take(b, "k")
			if len(told.round) != 1 {
				t.Errorf("%d rounds, want 1", len(told.round))
			}
		})
	})
}

// go-redsync/redsync 186: a lock taken on a bare majority was lost when one more node failed.
func TestCaseLateNodesGetTheKey(t *testing.T) {
	t.Parallel()
	for a := range 5 {
		for b := range a {
			t.Run(fmt.Sprintf("without nodes %d and %d", b, a), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) {
					u := r.user(redlock.Config{TTL: 3 * time.Second})
					r.warm(u)
					slow(50*time.Millisecond, r.nodes[3:]...)
					l := r.take(u, "k")
					time.Sleep(100 * time.Millisecond)
					r.wantKeys("k", 5)
					for _, i := range []int{a, b} {
						r.nodes[i].Faults().Down(true)
					}
					time.Sleep(time.Minute)
					r.wantHeld(l)
					r.wantIs(l.Extend(r.Context()))
				})
			})
		}
	}
	t.Run("a request that got lost is made good by the first renewal", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{TTL: 3 * time.Second})
			r.warm(u)
			for _, n := range r.nodes[3:] {
				n.Faults().LoseRequests(fakenode.Next(1))
			}
			l := r.take(u, "k")
			time.Sleep(1500 * time.Millisecond)
			r.wantKeys("k", 5)
			for _, n := range r.nodes[:2] {
				n.Faults().Down(true)
			}
			time.Sleep(time.Minute)
			r.wantHeld(l)
		})
	})
}

// leandromoreira/redlock-rb 36: a lock that had expired could be extended.
func TestCaseExpiredLocksCannotBeExtended(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{TTL: 200 * time.Millisecond})
		l := r.take(u, "k", redlock.WithoutRenewal())
		time.Sleep(300 * time.Millisecond)
		r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
		time.Sleep(time.Second)
		r.wantKeys("k", 0)
	})
}
