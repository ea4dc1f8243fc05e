package redlock_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Each refusal says once whose it is and that the input was invalid, and of which call.
func TestRefusalsReadAlike(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		l := r.take(u, "held")
		var nobody context.Context
		_, noContext := u.Lock(nobody, "a")
		_, noName := u.TryLock(r.Context(), "")
		_, badHandle := u.Resume(r.Context(), "x")
		handle, _ := r.take(u, "detached").Detach()
		_, resumed := u.Resume(r.Context(), handle, redlock.WithTTL(0))
		_, noTTL := u.Lock(r.Context(), "invoices", redlock.WithTTL(0))
		_, longName := u.TryLock(r.Context(), strings.Repeat("n", 10<<10), redlock.WithTTL(0))
		for want, err := range map[string]error{
			`redlock: lock "a": invalid: the context is nil`:                     noContext,
			`redlock: lock: invalid: name is empty`:                              noName,
			`redlock: lock "invoices": invalid: WithTTL(0s): must be positive`:   noTTL,
			`redlock: lock: invalid: WithTTL(0s): must be positive`:              longName,
			`redlock: resume "detached": invalid: WithTTL(0s): must be positive`: resumed,
			`redlock: do "a": invalid: fn is nil`:                                u.Do(r.Context(), "a", nil),
			`redlock: extend "held": invalid: the context is nil`:                l.Extend(nobody),
			`redlock: admit: invalid: "x" is not one of the nodes ["node0:6379" "node1:6379" "node2:6379"]`: u.Admit(
				r.Context(), "x"),
			`redlock: resume: invalid: handle: it does not begin with "qlh1.", as what Detach returns does`: badHandle,
		} {
			r.wantIs(err, redlock.ErrInvalid)
			if got := fmt.Sprint(err); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	t.Run("that are refused", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			for _, name := range []string{"", strings.Repeat("n", 1025), strings.Repeat("n", 10<<10),
				"ql:", "ql:node", "ql:h:a"} {
				_, tryErr := u.TryLock(r.Context(), name)
				_, lockErr := u.Lock(r.Context(), name)
				doErr := u.Do(r.Context(), name, func(context.Context, *redlock.Lock) error { return nil })
				for _, err := range []error{tryErr, lockErr, doErr} {
					r.wantIs(err, redlock.ErrInvalid)
					if len(fmt.Sprint(err)) > 2000 {
						t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
					}
				}
			}
			if n := r.nodes[0].Count("acquire"); n != 0 {
				t.Errorf("%d messages were sent, want none", n)
			}
		})
	})
	t.Run("that work, and are different locks", func(t *testing.T) {
		t.Parallel()
		names := []string{"a", "{a}", "a ", " a", " ", "a:b", "a{b}", "{a}b", "a\x00", "\x00", "a\xff", "\xff",
			"a\ufffd", "a\n", "a\r\n", "A", "*", "ä", "a\u0308", "QL:", "q", "ql", "free:a", "h:a",
			strings.Repeat("n", 1024), strings.Repeat("n", 1023)}
		inBubble(t, 3, func(r *rig) {
			var told diary
			u := r.user(redlock.Config{Observer: told.observer()})
			locks := map[string]*redlock.Lock{}
			for _, name := range names {
				locks[name] = r.take(u, name)
			}
			rival := r.user(redlock.Config{})
			for _, name := range names {
				r.wantIs(r.try(rival, name), redlock.ErrHeld)
			}
			for _, name := range names {
				if got := locks[name].Name(); got != name {
					t.Errorf("Name() = %q, want %q", got, name)
				}
				r.wantIs(locks[name].Extend(r.Context()))
				r.wantIs(locks[name].Unlock(r.Context()))
				r.take(rival, name)
			}
			// A waiter of each hears of its own releases alone.
			for _, name := range names {
				before := told.rounds()
				_, err := u.Lock(r.within(500*time.Millisecond), name)
				r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
				if n := told.rounds() - before; n > 3 {
					t.Errorf("%q: asked %d times", name, n)
				}
			}
		})
	})
}

func TestNilAndDeadContexts(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		held := r.take(u, "held")
		cancelled, cancel := context.WithCancel(r.Context())
		cancel()
		late, stop := context.WithDeadline(r.Context(), time.Now().Add(-time.Hour))
		defer stop()
		for _, c := range []struct {
			name string
			ctx  context.Context
			want error
		}{
			{"nil", nil, redlock.ErrInvalid},
			{"cancelled", cancelled, context.Canceled},
			{"past its deadline", late, context.DeadlineExceeded},
		} {
			asked := r.nodes[0].Count("acquire") + r.nodes[0].Count("extend")
			_, err := u.TryLock(c.ctx, "k")
			r.wantIs(err, c.want)
			_, err = u.Lock(c.ctx, "k")
			r.wantIs(err, c.want)
			r.wantIs(u.Do(c.ctx, "k", func(context.Context, *redlock.Lock) error {
				t.Errorf("%s: the function was called", c.name)
				return nil
			}), c.want)
			r.wantIs(held.Extend(c.ctx), c.want)
			r.wantIs(u.Admit(c.ctx), c.want)
			if n := r.nodes[0].Count("acquire") + r.nodes[0].Count("extend") - asked; n != 0 {
				t.Errorf("%s: %d messages were sent, want none", c.name, n)
			}
			r.wantKeys("k", 0)
			r.wantHeld(held)
			if n := u.Kept(); n != 1 {
				t.Errorf("%d locks are looked after, want 1", n)
			}

			// Unlock frees, whatever its context is.
			l := r.take(u, "freed")
			r.wantIs(l.Unlock(c.ctx))
			synctest.Wait()
			r.wantKeys("freed", 0)
		}
	})
}

func TestDurationsOfOptions(t *testing.T) {
	t.Parallel()
	const most = time.Minute
	for _, c := range []struct {
		name    string
		opts    []redlock.LockOption
		says    string // "": taken
		atLeast time.Duration
	}{
		{"TTL 0", []redlock.LockOption{redlock.WithTTL(0)}, "WithTTL(0s)", 0},
		{"TTL negative", []redlock.LockOption{redlock.WithTTL(-time.Second)}, "WithTTL(-1s)", 0},
		{"TTL 1ns", []redlock.LockOption{redlock.WithTTL(1)}, "WithTTL(1ns): leaves no validity", 0},
		{"TTL 1ms", []redlock.LockOption{redlock.WithTTL(time.Millisecond)}, "WithTTL(1ms): leaves no validity", 0},
		{"TTL 2.1ms", []redlock.LockOption{redlock.WithTTL(2100 * time.Microsecond)}, "", 1},
		{"TTL with parts of a millisecond", []redlock.LockOption{redlock.WithTTL(10*time.Millisecond + 1)}, "",
			7 * time.Millisecond},
		{"TTL as MaxTTL", []redlock.LockOption{redlock.WithTTL(most)}, "", 59 * time.Second},
		{"TTL above MaxTTL", []redlock.LockOption{redlock.WithTTL(most + 1)}, "above Config.MaxTTL, 1m0s", 0},
		{"TTL huge", []redlock.LockOption{redlock.WithTTL(math.MaxInt64)}, "above Config.MaxTTL", 0},
		{"TTL hugely negative", []redlock.LockOption{redlock.WithTTL(math.MinInt64)}, "must be positive", 0},
		{"MaxHold 0", []redlock.LockOption{redlock.WithMaxHold(0)}, "WithMaxHold(0s)", 0},
		{"MaxHold negative", []redlock.LockOption{redlock.WithMaxHold(-1)}, "WithMaxHold(-1ns)", 0},
		{"MaxHold 1ms", []redlock.LockOption{redlock.WithMaxHold(time.Millisecond)},
			"WithMaxHold(1ms): leaves no validity", 0},
		{"MinHold above the TTL", []redlock.LockOption{redlock.WithMinHold(11 * time.Second)},
			"WithMinHold(11s): above the lock's TTL, 10s; see WithTTL", 0},
		{"MinHold above what MaxHold makes of the TTL", []redlock.LockOption{
			redlock.WithMinHold(5 * time.Second), redlock.WithMaxHold(time.Second)},
			"WithMinHold(5s): above WithMaxHold, 1s", 0},
		{"a nil option", []redlock.LockOption{nil}, "LockOption is nil", 0},
		{"the last one counts", []redlock.LockOption{redlock.WithTTL(-1), redlock.WithTTL(time.Second)}, "",
			900 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{MaxTTL: most})
				l, err := u.TryLock(r.Context(), "k", c.opts...)
				if c.says == "" {
					r.wantIs(err)
					if left := l.Remaining(); left < c.atLeast || left > most {
						t.Errorf("%v remaining, want at least %v", left, c.atLeast)
					}
					return
				}
				r.wantIs(err, redlock.ErrInvalid)
				if !strings.Contains(fmt.Sprint(err), c.says) {
					t.Errorf("got %v, want it to say %q", err, c.says)
				}
				_, err = u.Lock(r.Context(), "k", c.opts...)
				r.wantIs(err, redlock.ErrInvalid)
				r.wantKeys("k", 0)
			})
		})
	}
	t.Run("all faults are told at once", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			err := r.try(r.user(redlock.Config{}), "k", redlock.WithMaxHold(-1), redlock.WithTTL(-2))
			r.wantIs(err, redlock.ErrInvalid)
			for _, want := range []string{"WithMaxHold(-1ns)", "WithTTL(-2ns)"} {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
		})
	})
	t.Run("a huge MaxHold is no limit, or refused", func(t *testing.T) {
		t.Parallel()
		for _, hold := range []time.Duration{math.MaxInt64, math.MaxInt64 / 2, 1 << 61} {
			inBubble(t, 3, func(r *rig) {
				l, err := r.user(redlock.Config{}).TryLock(r.Context(), "k", redlock.WithMaxHold(hold))
				if err != nil {
					r.wantIs(err, redlock.ErrInvalid)
					return
				}
				time.Sleep(time.Hour)
				r.wantHeld(l)
			})
		}
	})
}

// The zero Lock and the nil one hold nothing, and say so.
func TestLocksThatNobodyGave(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*redlock.Lock{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if l.Name() != "" || l.Token() != 0 || !l.Until().IsZero() || l.Remaining() > 0 {
				t.Errorf("name %q, token %d, until %v, remaining %v; want nothing",
					l.Name(), l.Token(), l.Until(), l.Remaining())
			}
			ctx := l.Context()
			if ctx.Err() == nil {
				t.Error("its context lives")
			}
			wantIs(t, context.Cause(ctx), redlock.ErrNotHeld)
			select {
			case <-l.Lost():
				t.Error("lost, though never held")
			default:
			}
			wantIs(t, l.Extend(t.Context()), redlock.ErrNotHeld)
			for range 2 {
				wantIs(t, l.Unlock(t.Context()), redlock.ErrNotHeld)
			}
			_, err := l.Detach()
			wantIs(t, err, redlock.ErrNotHeld)
		})
	}
}

// The zero Client and the nil one do nothing, and say so.
func TestClientsThatNobodyMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*redlock.Client{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.TryLock(t.Context(), "k")
			wantIs(t, err, redlock.ErrInvalid)
			_, err = c.Lock(t.Context(), "k", redlock.WithTTL(time.Second))
			wantIs(t, err, redlock.ErrInvalid)
			_, err = c.Inspect(t.Context(), "k")
			wantIs(t, err, redlock.ErrInvalid)
			_, err = c.Resume(t.Context(), "handle")
			wantIs(t, err, redlock.ErrInvalid)
			wantIs(t, c.Admit(t.Context()), redlock.ErrInvalid)
			wantIs(t, c.Do(t.Context(), "k", func(context.Context, *redlock.Lock) error { return nil }),
				redlock.ErrInvalid)
			if nodes := c.Nodes(t.Context()); nodes != nil || c.ClockOffset() != 0 {
				t.Errorf("nodes %v, offset %v; want none", nodes, c.ClockOffset())
			}
			wantIs(t, c.Close())
		})
	}
}

func TestNodesAfterClose(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		r.wantIs(u.Close())
		for _, n := range u.Nodes(r.Context()) {
			r.wantIs(n.Err, redlock.ErrClosed)
		}
	})
}

// A node that Admit or Nodes has found to be back is back for everybody at once.
func TestANodeThatWasFoundToBeBackIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	for what, find := range map[string]func(*user) error{
		"Admit": func(u *user) error { return u.Admit(context.Background()) },
		"Nodes": func(u *user) error { return u.Nodes(context.Background())[0].Err },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{})
				r.warm(u)
				for _, n := range r.nodes[:2] {
					n.Faults().Down(true)
				}
				for range 20 { // probes come at growing intervals
					r.wantIs(r.try(u, "k"), redlock.ErrNoQuorum)
					time.Sleep(100 * time.Millisecond)
				}
				for _, n := range r.nodes[:2] {
					n.Faults().Down(false)
				}
				r.wantIs(find(u))
				r.take(u, "k")
			})
		})
	}
}

func TestDoWithoutAFunction(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.wantIs(r.user(redlock.Config{}).Do(r.Context(), "k", nil), redlock.ErrInvalid)
		r.wantKeys("k", 0)
	})
}
