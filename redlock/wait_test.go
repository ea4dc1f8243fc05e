package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// A waiter that is refused by a majority gives back what it got from the others. That is told to
// all who listen, itself included, and must wake nobody: the holder holds on.
func TestWaitersAreNotWokenByFailedAttempts(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 5} {
		t.Run(fmt.Sprint(waiters, " processes wait"), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				l := r.take(r.user(redlock.Config{}), "k")
				r.nodes[0].Delete("k") // free for whoever asks, and no majority
				var all sync.WaitGroup
				for range waiters {
					u := r.user(redlock.Config{})
					r.warm(u)
					all.Go(func() {
						_, err := u.Lock(r.within(2*time.Second), "k")
						r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
					})
				}
				synctest.Wait()
				before := r.nodes[0].Count("acquire")
				time.Sleep(1900 * time.Millisecond)
				if n := r.nodes[0].Count("acquire") - before; n > 2*waiters {
					t.Errorf("node 0 was asked %d times in 1.9s by %d waiters", n, waiters)
				}
				all.Wait()
				r.wantHeld(l)
			})
		})
	}
}

func TestLockWakesByNotification(t *testing.T) {
	t.Parallel()
	const all, one, none = 5, 1, 0
	for _, c := range []struct {
		name    string
		hears   int
		within  time.Duration
		meddles bool // others fail meanwhile, and what they give back is told as well
	}{
		{"from all nodes", all, time.Millisecond, false},
		{"from one node", one, 10 * time.Millisecond, false},
		{"from one node, and from another of others' failures", 2, 10 * time.Millisecond, true},
		{"from none: by the slow poll", none, 10 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
				r.warm(b)
				l := r.take(a, "k")
				for _, link := range b.links[c.hears:] {
					link.Faults().LosePublished(fakenode.Always)
				}
				won := make(chan time.Time, 1)
				go func() {
					l, err := b.Lock(r.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					won <- time.Now()
					r.wantIs(l.Unlock(r.Context()))
				}()
				time.Sleep(5 * time.Second)
				if c.meddles {
					meddler := r.user(redlock.Config{})
					r.warm(meddler)
					r.nodes[1].Delete("k")
					time.AfterFunc(time.Second-time.Millisecond, func() {
						r.wantIs(r.try(meddler, "k"), redlock.ErrHeld)
					})
					time.AfterFunc(time.Second+time.Millisecond, func() {
						if l, err := meddler.TryLock(context.Background(), "k"); err == nil {
							r.wantIs(l.Unlock(context.Background()))
						}
					})
				}
				time.Sleep(time.Second)
				r.wantIs(l.Unlock(r.Context()))
				freed := time.Now()
				if took := (<-won).Sub(freed); took > c.within {
					t.Errorf("won %v after the release, want within %v", took, c.within)
				}
			})
		})
	}
}

// A release wakes who waits in all processes at once. They do not all ask at once.
func TestWaitersStandBackForEachOther(t *testing.T) {
	t.Parallel()
	const waiters, delay = 10, time.Millisecond
	inBubble(t, 5, func(r *rig) {
		slow(delay, r.nodes...) // of replies
		first := r.user(redlock.Config{})
		r.warm(first)
		l := r.take(first, "k")
		var all sync.WaitGroup
		for range waiters {
			u := r.user(redlock.Config{})
			r.warm(u)
			all.Go(func() {
				l, err := u.Lock(r.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				r.wantIs(l.Unlock(r.Context()))
			})
		}
		time.Sleep(6 * time.Second) // all listen, and have counted each other since
		before := r.nodes[0].Count("acquire")
		r.wantIs(l.Unlock(r.Context()))
		time.Sleep(delay / 4) // who asks as soon as it hears of it has asked by now
		if asked := r.nodes[0].Count("acquire") - before; asked > waiters/2 {
			t.Errorf("%d of %d that wait asked at once", asked, waiters)
		}
		all.Wait()
	})
}

// waits takes the lock in the background and gives it back, and tells when it had it.
func (r *rig) waits(u *user, name string) <-chan time.Time {
	won := make(chan time.Time, 1)
	go func() {
		l, err := u.Lock(r.Context(), name)
		had := time.Now()
		if err != nil {
			r.Error(err)
		} else {
			r.wantIs(l.Unlock(r.Context()))
		}
		won <- had
	}()
	return won
}

// Those who wait all the time take the lock one after the other. At a release one of them asks for
// it; the others ask one node who has it.
func TestAHandOffCostsOneTry(t *testing.T) {
	t.Parallel()
	const replicas, rounds, delay, hold = 4, 50, time.Millisecond, 40 * time.Millisecond
	inBubble(t, 5, func(r *rig) {
		slow(delay, r.nodes...)
		var all sync.WaitGroup
		for range replicas {
			u := r.user(redlock.Config{})
			r.warm(u)
			all.Go(func() {
				for range rounds {
					l, err := u.Lock(r.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(hold)
					r.wantIs(l.Unlock(r.Context()))
					time.Sleep(hold / 2) // another one has it by then
				}
			})
		}
		all.Wait()
		// One takes it, and who had it asks once to find that; some meet at first.
		handOffs := float64(replicas * rounds)
		if tries := float64(r.nodes[0].Count("acquire")) / handOffs; tries > 2.3 {
			t.Errorf("%.2f tries a hand-off, want 2", tries)
		}
		looks := 0
		for _, n := range r.nodes {
			looks += n.Count("inspect")
		}
		if per := float64(looks) / handOffs; per > replicas-1 {
			t.Errorf("%.2f looks a hand-off, want one of each that waits and has others before it", per)
		}
	})
}

// Who tries and frees all the time has no rank, and does not keep those waiting who have one.
func TestWaitersAreNotStarvedByOneWhoTriesAllTheTime(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		slow(time.Millisecond, r.nodes...)
		greedy := r.user(redlock.Config{})
		r.warm(greedy)
		for i := range 20 { // what they draw is different each time
			name := fmt.Sprint("k", i)
			ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
			var all, tries sync.WaitGroup
			done := make(chan struct{})
			l := r.take(greedy, name)
			tries.Go(func() {
				time.Sleep(6 * time.Second) // those who wait have counted each other
				r.wantIs(l.Unlock(r.Context()))
				for {
					select {
					case <-done:
						return
					default:
						if l, err := greedy.TryLock(r.Context(), name); err == nil {
							time.Sleep(30 * time.Millisecond)
							r.wantIs(l.Unlock(r.Context()))
						}
					}
				}
			})
			for range 2 {
				u := r.user(redlock.Config{})
				r.warm(u)
				all.Go(func() {
					l, err := u.Lock(ctx, name)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					r.wantIs(l.Unlock(r.Context()))
				})
			}
			all.Wait()
			close(done)
			tries.Wait()
			cancel()
		}
	})
}

// A look at one node finds a key there that the others do not have. It is not believed for long.
func TestAWaiterDoesNotBelieveOneNodeForLong(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		slow(time.Millisecond, r.nodes...)
		first := r.user(redlock.Config{})
		r.warm(first)
		for i := range 30 { // which node it looks at is different each time
			name := fmt.Sprint("k", i)
			r.nodes[4].Set(name, "ql1:of nobody/any more", time.Hour)
			l := r.take(first, name)
			ctx, cancel := context.WithCancel(r.Context())
			var gone sync.WaitGroup
			for range 3 { // are let go first, and do not come
				u := r.user(redlock.Config{})
				r.warm(u)
				gone.Go(func() { _, _ = u.Lock(ctx, name) })
				time.Sleep(20 * time.Millisecond)
				u.cut(true, 0, 1, 2, 3, 4)
			}
			b := r.user(redlock.Config{})
			r.warm(b)
			won := r.waits(b, name)
			time.Sleep(100 * time.Millisecond)
			short, end := context.WithTimeout(r.Context(), 40*time.Millisecond)
			hasty := r.user(redlock.Config{}) // whose wait ends while it may believe that node
			r.warm(hasty)
			said := make(chan error, 1)
			go func() {
				l, err := hasty.Lock(short, name)
				if err == nil {
					err = l.Unlock(r.Context())
				}
				said <- err
			}()
			time.Sleep(10 * time.Millisecond)
			freed := time.Now()
			r.wantIs(l.Unlock(r.Context()))
			var round *redlock.RoundError
			if err := <-said; errors.As(err, &round) && strings.HasPrefix(round.Holder, "of nobody") {
				t.Errorf("%s: one node's word is told: %v", name, err)
			}
			end()
			if took := (<-won).Sub(freed); took > 1500*time.Millisecond {
				t.Errorf("%s: it took %v, want a second at the most", name, took)
			}
			cancel()
			gone.Wait()
		}
	})
}

// A release of ours is heard, and somebody of another library has the lock by then, who frees it in
// silence.
func TestAWaiterAsksSoonForWhatAnotherLibraryTook(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		slow(time.Millisecond, r.nodes...)
		first := r.user(redlock.Config{})
		r.warm(first)
		for i := range 10 { // which rank it draws is different each time
			name := fmt.Sprint("k", i)
			l := r.take(first, name)
			var won [2]<-chan time.Time
			for i := range won {
				u := r.user(redlock.Config{})
				r.warm(u)
				won[i] = r.waits(u, name)
			}
			time.Sleep(6 * time.Second) // they have counted each other
			for _, n := range r.nodes {
				n.OnExecuted(func(x fakenode.Executed) {
					if x.Script == "release" && x.Args[0] == name {
						n.OnExecuted(nil)
						n.Set(name, "another library's", time.Minute)
					}
				})
			}
			r.wantIs(l.Unlock(r.Context()))
			time.Sleep(200 * time.Millisecond)
			for _, n := range r.nodes {
				n.Delete(name)
			}
			freed := time.Now()
			one, other := <-won[0], <-won[1]
			if other.Before(one) {
				one = other
			}
			if took := one.Sub(freed); took > 600*time.Millisecond {
				t.Errorf("%s: it took %v after a silent release, want a few hundred milliseconds", name, took)
			}
		}
	})
}

// Those before a waiter are gone: it has the lock after the time that was theirs.
func TestWhoIsLetGoFirstNeedNotCome(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		slow(time.Millisecond, r.nodes...)
		first := r.user(redlock.Config{})
		r.warm(first)
		l := r.take(first, "k")
		ctx, cancel := context.WithCancel(r.Context())
		var gone sync.WaitGroup
		for range 5 { // listen, and are cut off
			u := r.user(redlock.Config{})
			r.warm(u)
			gone.Go(func() { _, _ = u.Lock(ctx, "k") })
			time.Sleep(100 * time.Millisecond)
			u.cut(true, 0, 1, 2, 3, 4)
		}
		b := r.user(redlock.Config{})
		r.warm(b)
		won := r.waits(b, "k")
		time.Sleep(100 * time.Millisecond)
		freed := time.Now()
		r.wantIs(l.Unlock(r.Context()))
		if took := (<-won).Sub(freed); took > 100*time.Millisecond {
			t.Errorf("it took %v, want the time of five others", took)
		}
		cancel()
		gone.Wait()
	})
}

func TestLockWakesWhenADeadHoldersTimeIsOver(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.warm(b)
		r.take(a, "k", redlock.WithTTL(7300*time.Millisecond))
		a.cut(true, 0, 1, 2, 3, 4)
		began := time.Now()
		if _, err := b.Lock(r.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		r.wantTook(began, 7300*time.Millisecond, 7310*time.Millisecond)
	})
}

// While nothing happens a waiter costs less than a command a second, of all nodes together.
func TestWaitingCostsNextToNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.warm(b)
		l := r.take(a, "k")
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(r.Context())
		go func() {
			_, err := b.Lock(ctx, "k")
			ended <- err
		}()
		asked := func() (n int) {
			for _, node := range r.nodes {
				for command, count := range node.Counts() {
					if command != "extend" && command != "plant" { // the holder's
						n += count
					}
				}
			}
			return n
		}
		time.Sleep(100 * time.Millisecond) // it has asked, and listens
		for _, span := range []time.Duration{2 * time.Second, 10 * time.Second, 10 * time.Minute} {
			before := asked()
			time.Sleep(span)
			if n := asked() - before; float64(n) >= span.Seconds() {
				t.Errorf("%d commands in %v", n, span)
			}
		}
		cancel()
		r.wantIs(<-ended, redlock.ErrHeld, context.Canceled)
		r.wantHeld(l)
		r.wantIs(l.Unlock(r.Context()))
	})
}

// One node missed a release that nobody heard of. Whoever asks that node only waits for ever.
func TestAWaiterDoesNotAskTheSameNodeOnly(t *testing.T) {
	t.Parallel()
	for odd := range 5 {
		t.Run(fmt.Sprint("node ", odd), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				u := r.user(redlock.Config{})
				r.warm(u)
				r.holds("k", "ql1:A/1", time.Hour)
				began := time.Now()
				time.AfterFunc(500*time.Millisecond, func() {
					for i, n := range r.nodes {
						if i != odd {
							n.Delete("k")
						}
					}
				})
				if _, err := u.Lock(r.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				r.wantTook(began, time.Second, 5100*time.Millisecond)
			})
		})
	}
}

// Others pass the lock on all the time, and free it without a word, as redsync does.
func TestAWaiterIsNotStarvedByThoseWhoFreeInSilence(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		won := make(chan error, 1)
		for turn, began := 0, time.Now(); ; turn++ {
			for _, n := range r.nodes {
				if _, held := n.Get("k"); !held {
					n.Set("k", fmt.Sprint("a value of redsync's ", turn), 8*time.Second)
				}
			}
			if turn == 0 {
				go func() {
					_, err := u.Lock(r.within(time.Minute), "k")
					won <- err
				}()
			}
			time.Sleep(40 * time.Millisecond) // held
			for _, n := range r.nodes {
				if holder, _ := n.Get("k"); strings.HasPrefix(holder, "a value") {
					n.Delete("k")
				}
			}
			time.Sleep(10 * time.Millisecond) // free
			select {
			case err := <-won:
				r.wantIs(err)
				r.wantTook(began, 0, 15*time.Second)
				return
			default:
			}
		}
	})
}

// A holder shortened its keys, and nobody heard of it: a look finds out.
func TestAWaiterSeesThatLessIsLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		cfg := redlock.Config{TTL: time.Minute, MaxTTL: time.Minute}
		a, b := r.user(cfg), r.user(cfg)
		r.warm(b)
		for _, link := range b.links {
			link.Faults().LosePublished(fakenode.Always)
		}
		const hold = 1500 * time.Millisecond
		began := time.Now()
		l := r.take(a, "k", redlock.WithMinHold(hold))
		time.AfterFunc(hold/3, func() { r.wantIs(l.Unlock(context.Background())) })
		if _, err := b.Lock(r.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		r.wantTook(began, hold, hold+10*time.Millisecond)
	})
}

// The error of a wait that was ended says what is left by then, and not what was at its beginning.
func TestAWaitersErrorIsUpToDate(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		r.holds("k", "ql1:A/1", time.Hour)
		_, err := u.Lock(r.within(50*time.Minute), "k")
		var round *redlock.RoundError
		if !errors.As(err, &round) {
			t.Fatalf("got %v, want a RoundError", err)
		}
		if left := round.Remaining; left < 10*time.Minute || left > 11*time.Minute {
			t.Errorf("%v is left, want about 10 minutes", left)
		}
	})
}

// A node that has frozen at the end of a dead holder's lock delays nobody.
func TestAFrozenNodeDoesNotDelayTheTakeover(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		const left = 7 * time.Second
		r.holds("k", "ql1:A/1", left)
		began := time.Now()
		time.AfterFunc(left-100*time.Millisecond, r.nodes[4].Pause)
		if _, err := u.Lock(r.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		r.wantTook(began, left, left+20*time.Millisecond)
		r.nodes[4].Resume()
	})
}

// When the slow poll comes in the very millisecond in which the holder's key ends, nothing is left
// of it and it is still there.
func TestLockAsksAgainAtOnceWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{time.Second, 3 * time.Second, 7 * time.Second} {
		t.Run(left.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{})
				r.warm(u)
				r.holds("k", "ql1:A/1", left)
				began := time.Now()
				if _, err := u.Lock(r.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				r.wantTook(began, left, left+10*time.Millisecond)
			})
		})
	}
}

// A key without an end, which is none of ours, is asked for at the slow poll's pace.
func TestLockWaitsPatientlyForAKeyWithoutAnEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		var told diary
		u := r.user(redlock.Config{Observer: told.observer()})
		r.holds("k", "an application's", 0)
		_, err := u.Lock(r.within(30*time.Second), "k")
		r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
		if n := told.rounds(); n > 10 {
			t.Errorf("asked %d times in 30s, want at most 10", n)
		}
	})
}

func TestLockServesAProcessInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		l := r.take(r.user(redlock.Config{}), "k")
		u := r.user(redlock.Config{})
		r.warm(u)
		var mu sync.Mutex
		var served, wanted []int
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				ctx := r.Context()
				if i%5 == 4 { // gives up while it stands in the line
					ctx = r.within(time.Second)
				}
				l, err := u.Lock(ctx, "k")
				if i%5 == 4 {
					r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				r.wantIs(l.Unlock(ctx))
			})
			if i%5 != 4 {
				wanted = append(wanted, i)
			}
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		r.wantIs(l.Unlock(r.Context()))
		all.Wait()
		if !slices.Equal(served, wanted) {
			t.Errorf("served %v, want %v", served, wanted)
		}
		if n := u.Lines(); n != 0 {
			t.Errorf("%d names are waited for, want none", n)
		}
	})
}

func TestLockWaitsForNodesThatAreDown(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		for _, n := range r.nodes {
			n.Faults().Down(true)
		}
		time.AfterFunc(time.Minute, func() {
			for _, n := range r.nodes[:2] {
				n.Faults().Down(false)
			}
		})
		began := time.Now()
		if _, err := u.Lock(r.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		r.wantTook(began, time.Minute, time.Minute+1100*time.Millisecond)
	})
}

func TestLockGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		for _, n := range r.nodes[:2] {
			n.Refuse("NOAUTH Authentication required.")
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("a cause of the caller's")) })
		_, err := u.Lock(ctx, "k")
		r.wantIs(err, redlock.ErrNoQuorum, context.Canceled)
		if text := fmt.Sprint(err); len(r.round(err).Errs) != 2 ||
			!strings.Contains(text, "; nodes node0:6379, node1:6379: lock: ") ||
			strings.Count(text, "NOAUTH") != 1 {
			t.Errorf("got %q, want the last answer of both nodes", text)
		}
	})
}

func TestCloseWhileCallersWait(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.take(r.user(redlock.Config{}), "k")
		u := r.user(redlock.Config{})
		r.warm(u)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := u.Lock(context.Background(), "k")
				r.wantIs(err, redlock.ErrClosed)
			})
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		r.wantIs(u.Close())
		all.Wait()
		r.wantTook(began, 0, 0)
		synctest.Wait()
		for _, n := range r.nodes {
			if left := n.Listeners(); len(left) != 0 {
				t.Errorf("%v: channels %v are subscribed, want none", n, left)
			}
		}
	})
}

// Split votes are no nodes that wait: who is told to say Admit then says it while locks are held.
func TestSplitVotesAreNotToldAsNodesThatWait(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		var log bytes.Buffer
		a := r.user(redlock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.warm(a)
		for i, rival := range []string{"x", "x", "y", "y", "z"} {
			r.nodes[i].Set("k", "ql1:"+rival+"/!", 3*time.Second)
		}
		began := time.Now()
		l, err := a.Lock(r.Context(), "k")
		r.wantIs(err)
		r.wantTook(began, 3*time.Second, 4*time.Second)
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		if log.Len() > 0 {
			r.Errorf("logged: %s", log.String())
		}
	})
}

// A release is heard also in the pause after split votes: who has been waiting does not sleep through it.
func TestAReleaseEndsThePauseAfterSplitVotes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.warm(b)
		l := r.take(a, "k")
		won := r.waits(b, "k") // and listens for a moment afterwards
		time.Sleep(time.Millisecond)
		r.wantIs(l.Unlock(r.Context()))
		<-won
		for i, rival := range []string{"x", "x", "y", "y", "z"} {
			r.nodes[i].Set("k", "ql1:"+rival+"/!", time.Second)
		}
		won = r.waits(b, "k")
		time.Sleep(time.Millisecond)
		for _, n := range r.nodes {
			n.Delete("k")
		}
		l = r.take(a, "k")
		freed := time.Now()
		r.wantIs(l.Unlock(r.Context()))
		if took := (<-won).Sub(freed); took > 0 {
			t.Errorf("it took %v after the release, and nobody was in the way", took)
		}
	})
}

// What a further node tells of the release that the try was made for is no news in the pause.
func TestTheSameReleaseDoesNotEndThePauseAfterSplitVotes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.warm(b)
		l := r.take(a, "k")
		won := r.waits(b, "k")
		time.Sleep(time.Millisecond)
		var late atomic.Bool // node 2 tells after b has asked, 3 and 4 never do
		b.links[2].Faults().DelayReplies(func() time.Duration {
			if late.Swap(true) {
				return 0
			}
			return 4 * time.Millisecond
		})
		b.links[3].Faults().LosePublished(fakenode.Always)
		b.links[4].Faults().LosePublished(fakenode.Always)
		for i, rival := range []string{"x", "x", "y", "y", "z"} {
			var once sync.Once
			r.nodes[i].OnExecuted(func(x fakenode.Executed) {
				if x.Script == "release" {
					once.Do(func() { x.Node.Set("k", "ql1:"+rival+"/!", 5*time.Millisecond) })
				}
			})
		}
		freed := time.Now()
		r.wantIs(l.Unlock(r.Context()))
		if took := (<-won).Sub(freed); took < 8*time.Millisecond || took > 15*time.Millisecond {
			t.Errorf("it took %v, want the 3 ms of the grace and one pause", took)
		}
	})
}
