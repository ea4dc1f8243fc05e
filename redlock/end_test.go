package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func TestUnlockManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	for _, down := range []int{0, 3} {
		t.Run(fmt.Sprint(down, " nodes down"), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				var told diary
				u := r.user(redlock.Config{Observer: told.observer()})
				l := r.take(u, "k")
				slow(10*time.Millisecond, r.nodes...)
				for _, n := range r.nodes[:down] {
					n.Faults().Partition(true)
				}
				began := time.Now()
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() {
						err := l.Unlock(r.Context())
						if down == 0 {
							r.wantIs(err)
						} else {
							r.wantIs(err, redlock.ErrNoQuorum)
						}
					})
				}
				all.Wait()
				r.wantTook(began, 0, 500*time.Millisecond)
				for _, n := range r.nodes[:down] {
					n.Faults().Partition(false)
				}
				time.Sleep(3 * time.Second)
				r.wantIs(l.Unlock(r.Context()))
				r.wantIs(l.Unlock(r.Context()))
				r.wantKeys("k", 0)
				if want := "gained k, freed k"; told.String() != want {
					t.Errorf("told %q, want %q", told.String(), want)
				}
			})
		})
	}
}

// A release that got no answer may have been done: a rival's key is then no contradiction.
func TestUnlockAfterAReleaseWithoutAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		l := r.take(u, "k")
		for _, n := range r.nodes {
			n.Faults().LoseReplies(fakenode.Next(1))
		}
		r.wantIs(l.Unlock(r.Context()), redlock.ErrNoQuorum)
		b := r.user(redlock.Config{})
		r.take(b, "k")
		time.Sleep(time.Second)
		r.wantIs(l.Unlock(r.Context()))
		r.wantKeys("k", 3)
	})
}

// TestUnlockOverConnectionsThatBreak: the release is sent again, and a rival that came in between
// is no sign that the lock was not held.
func TestUnlockOverConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		l := r.take(u, "k")
		for _, n := range r.nodes {
			broken := false
			n.Faults().BreakReplies(func(calls int) int {
				if broken {
					return calls
				}
				broken = true
				return 0
			})
			n.OnExecuted(func(e fakenode.Executed) {
				if e.Script == "release" && e.Reply == "+" {
					n.Set("k", "ql1:rival/1", time.Minute)
				}
			})
		}
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		if got := r.contents("k"); got != "[ql1:rival/1 ql1:rival/1 ql1:rival/1]" {
			r.Errorf("keys %s, want the rival's", got)
		}
	})
}

func TestUnlockEndsTheLockBeforeTheNodesAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		l := r.take(u, "k")
		ctx := l.Context()
		slow(100*time.Millisecond, r.nodes...)
		go func() { r.wantIs(l.Unlock(r.Context())) }()
		time.Sleep(10 * time.Millisecond)
		if ctx.Err() == nil || l.Remaining() > 0 {
			t.Error("usable while it is being unlocked")
		}
		r.wantIs(l.Extend(r.Context()), redlock.ErrNotHeld)
		time.Sleep(time.Second)
	})
}

func TestDo(t *testing.T) {
	t.Parallel()
	errWork := errors.New("the work failed")
	t.Run("frees, and gives back what the function said", func(t *testing.T) {
		t.Parallel()
		for _, want := range []error{nil, errWork} {
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{})
				err := u.Do(r.Context(), "k", func(ctx context.Context, l *redlock.Lock) error {
					r.wantHeld(l)
					synctest.Wait()
					r.wantKeys("k", 3)
					if ctx.Err() != nil || l.Name() != "k" {
						t.Errorf("context %v, name %q", ctx.Err(), l.Name())
					}
					return want
				})
				if err != want {
					t.Errorf("got %v, want exactly %v", err, want)
				}
				synctest.Wait()
				r.wantKeys("k", 0)
			})
		}
	})
	t.Run("its context ends with the caller's", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			err := u.Do(r.within(time.Second), "k", func(ctx context.Context, l *redlock.Lock) error {
				<-ctx.Done()
				r.wantHeld(l)
				return ctx.Err()
			})
			r.wantIs(err, context.DeadlineExceeded)
			synctest.Wait()
			r.wantKeys("k", 0)
		})
	})
	t.Run("its context ends with the lock", func(t *testing.T) {
		t.Parallel()
		for _, said := range []error{nil, errWork} {
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{})
				err := u.Do(r.Context(), "k", func(ctx context.Context, l *redlock.Lock) error {
					u.cut(true, 0, 1, 2)
					<-ctx.Done()
					r.wantIs(context.Cause(ctx), redlock.ErrLost)
					return said
				})
				r.wantIs(err, redlock.ErrLost)
				if said != nil && !errors.Is(err, said) {
					t.Errorf("got %v, want the function's error as well", err)
				}
			})
		}
	})
	t.Run("a loss that nobody noticed is told all the same", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.wantIs(u.Do(r.Context(), "k", func(context.Context, *redlock.Lock) error {
				u.clock.stepWall(time.Hour)
				return nil
			}), redlock.ErrLost)
		})
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.wantIs(u.Do(r.Context(), "k", func(context.Context, *redlock.Lock) error {
				return u.Close()
			}), redlock.ErrClosed)
		})
	})
	t.Run("freed by the function itself", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.wantIs(u.Do(r.Context(), "k", func(ctx context.Context, l *redlock.Lock) error {
				return l.Unlock(ctx)
			}))
		})
	})
	t.Run("a panic frees and goes on", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			func() {
				defer func() {
					if p := recover(); p != "on the floor" {
						t.Errorf("recovered %v", p)
					}
				}()
				_ = u.Do(r.Context(), "k", func(context.Context, *redlock.Lock) error { panic("on the floor") })
			}()
			synctest.Wait()
			r.wantKeys("k", 0)
		})
	})
	t.Run("an unlock that finds too few nodes is logged", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			var book logbook
			u := r.user(redlock.Config{Logger: book.logger()})
			r.wantIs(u.Do(r.Context(), "k", func(context.Context, *redlock.Lock) error {
				u.cut(true, 0, 1)
				return nil
			}))
			if !contains(book.String(), "unlock goes on in the background") {
				t.Errorf("got log %q", book.String())
			}
			u.cut(false, 0, 1)
			time.Sleep(2 * time.Second)
			r.wantKeys("k", 0)
		})
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("frees what is held, and ends it", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			var locks []*redlock.Lock
			for i := range 100 {
				locks = append(locks, r.take(u, fmt.Sprint("k", i)))
			}
			r.wantIs(u.Close())
			for _, l := range locks {
				r.wantIs(context.Cause(l.Context()), redlock.ErrClosed)
				r.wantIs(l.Unlock(r.Context()), redlock.ErrClosed)
				r.wantKeys(l.Name(), 0)
			}
		})
	})
	t.Run("many times, also at once", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.take(u, "k")
			slow(100*time.Millisecond, r.nodes...)
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					began := time.Now()
					r.wantIs(u.Close())
					r.wantTook(began, 100*time.Millisecond, 250*time.Millisecond)
				})
			}
			all.Wait()
			r.wantIs(u.Close())
			r.wantKeys("k", 0)
		})
	})
	t.Run("while locks are freed and taken", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			var all sync.WaitGroup
			for i := range 200 {
				l := r.take(u, fmt.Sprint("k", i))
				all.Go(func() {
					if err := l.Unlock(r.Context()); err != nil {
						r.wantIs(err, redlock.ErrClosed)
					}
				})
				all.Go(func() {
					if _, err := u.TryLock(r.Context(), fmt.Sprint("new", i)); err != nil {
						r.wantIs(err, redlock.ErrClosed)
					}
				})
			}
			began := time.Now()
			r.wantIs(u.Close())
			r.wantTook(began, 0, 10*time.Millisecond)
			all.Wait()
			for i := range 200 {
				r.wantKeys(fmt.Sprint("k", i), 0)
				r.wantKeys(fmt.Sprint("new", i), 0)
			}
		})
	})
	t.Run("bounded when nodes hang", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.take(u, "k")
			for _, n := range r.nodes[:2] {
				n.Pause()
			}
			began := time.Now()
			if err := u.Close(); !errors.Is(err, redlock.ErrNoQuorum) {
				t.Errorf("got %v, want ErrNoQuorum", err)
			}
			r.wantTook(began, 0, time.Second)
		})
	})
	t.Run("everything after it says so", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.wantIs(u.Close())
			_, tryErr := u.TryLock(r.Context(), "k")
			_, lockErr := u.Lock(r.Context(), "k")
			doErr := u.Do(r.Context(), "k", func(context.Context, *redlock.Lock) error { return nil })
			for _, err := range []error{tryErr, lockErr, doErr, u.Admit(r.Context())} {
				r.wantIs(err, redlock.ErrClosed)
			}
		})
	})
}

// What an Observer is told over the life of a lock, and that a nil one is fine.
func TestObserver(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		var told diary
		u := r.user(redlock.Config{Observer: told.observer()})
		empty := r.user(redlock.Config{Observer: &redlock.Observer{}})
		l := r.take(u, "k")
		r.wantIs(r.try(empty, "k"), redlock.ErrHeld)
		r.wantIs(l.Extend(r.Context()))
		r.wantIs(l.Unlock(r.Context()))
		l2 := r.take(u, "k2")
		r.nodes[0].Faults().Down(true)
		time.Sleep(20 * time.Second)
		r.nodes[0].Faults().Down(false)
		time.Sleep(time.Second)
		for _, n := range r.nodes {
			n.Delete("k2")
		}
		<-l2.Lost()
		synctest.Wait()
		if want := "gained k, freed k, gained k2, lost k2"; told.String() != want {
			t.Errorf("told %q, want %q", told.String(), want)
		}
		told.mu.Lock()
		defer told.mu.Unlock()
		if len(told.nodes) != 2 || told.nodes[0].Err == nil || told.nodes[1].Err != nil ||
			told.nodes[0].Node != "node0:6379" {
			t.Errorf("told of nodes %v, want a failure of node0 and its end", told.nodes)
		}
		ops := map[string]int{}
		for _, x := range told.round {
			ops[x.Op]++
			if x.Nodes != 3 || x.Err == nil && x.Votes < 2 {
				t.Errorf("told of a round %+v", x)
			}
		}
		if ops["lock"] != 2 || ops["unlock"] != 1 || ops["extend"] < 6 {
			t.Errorf("told of rounds %v", ops)
		}
	})
}

func TestCloseTellsOfWhatItFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var freed []string
		q := redlocktest.Start(t, 3)
		c, err := q.Client(redlock.Config{Observer: &redlock.Observer{
			Freed: func(e redlock.Event) {
				mu.Lock()
				defer mu.Unlock()
				freed = append(freed, e.Name)
			}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.TryLock(t.Context(), "held"); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(freed) != 1 || freed[0] != "held" {
			t.Errorf("told of %q, want the lock that Close freed", freed)
		}
	})
}
