package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// Faults that users of comparable libraries reported, as tests: here those where the error said
// something else than what had happened.

// go-redsync/redsync 125, 107, 124: unlock of something never locked, expired, another's, or that
// is no lock at all, said "already taken" every time.
func TestCaseFourWaysToHaveNothingToUnlock(t *testing.T) {
	t.Parallel()
	t.Run("never held", func(t *testing.T) {
		t.Parallel()
		wantIs(t, new(redlock.Lock).Unlock(t.Context()), redlock.ErrNotHeld)
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			l := r.take(r.user(redlock.Config{TTL: time.Second}), "k", redlock.WithoutRenewal())
			time.Sleep(2 * time.Second)
			r.wantIs(l.Unlock(r.Context()), redlock.ErrNotHeld, redlock.ErrLost)
		})
	})
	t.Run("a rival's by now", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			l := r.take(r.user(redlock.Config{TTL: time.Second}), "k", redlock.WithoutRenewal())
			time.Sleep(2 * time.Second)
			r.take(r.user(redlock.Config{Identity: "B"}), "k")
			err := l.Unlock(r.Context())
			r.wantIs(err, redlock.ErrNotHeld, redlock.ErrHeld)
			if holder := r.round(err).Holder; holder != "B" {
				t.Errorf("holder %q, want B", holder)
			}
			synctest.Wait()
			r.wantKeys("k", 3)
		})
	})
	t.Run("a hash of the application's", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			l := r.take(u, "k")
			for _, n := range r.nodes {
				n.SetHash("k", map[string]string{"the application's": "data"}, 0)
				n.SetHash("never locked", map[string]string{"the application's": "data"}, 0)
			}
			for what, err := range map[string]error{
				"TryLock": r.try(u, "never locked"), "Unlock": l.Unlock(r.Context()),
			} {
				r.wantIs(err, redlock.ErrNoQuorum)
				if round := r.round(err); len(round.Errs) < 2 ||
					!strings.Contains(round.Errs[0].Error(), "WRONGTYPE") {
					t.Errorf("%s: %v, want the nodes' WRONGTYPE", what, err)
				}
			}
			time.Sleep(time.Minute) // all repetitions are over
			for _, n := range r.nodes {
				for _, key := range []string{"k", "never locked"} {
					if n.Hash(key)["the application's"] != "data" || n.TTL(key) != fakenode.NoEnd {
						t.Errorf("%v: %q was changed", n, key)
					}
				}
			}
		})
	})
}

// bsm/redislock 79; go-redsync/redsync 98, 83: a deadline that passed while waiting gave either the
// context's error or "failed", and a node's time-out looked like the caller's deadline.
func TestCaseAWaitThatEndsSaysBoth(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 30 * time.Millisecond, 70 * time.Millisecond} {
		t.Run(fmt.Sprint("deadline, nodes take ", delay), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				r.take(r.user(redlock.Config{Identity: "A"}), "k")
				b := r.user(redlock.Config{})
				r.warm(b)
				slow(delay, r.nodes...)
				began := time.Now()
				_, err := b.Lock(r.within(200*time.Millisecond), "k")
				r.wantTook(began, 200*time.Millisecond, 200*time.Millisecond)
				r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
				if holder := r.round(err).Holder; holder != "A" {
					t.Errorf("holder %q, want A", holder)
				}
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.take(r.user(redlock.Config{}), "k")
			ctx, cancel := context.WithCancel(r.Context())
			time.AfterFunc(200*time.Millisecond, cancel)
			_, err := r.user(redlock.Config{}).Lock(ctx, "k")
			r.wantIs(err, redlock.ErrHeld, context.Canceled)
		})
	})
	t.Run("behind another waiter of the same process", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.take(r.user(redlock.Config{}), "k")
			b := r.user(redlock.Config{})
			go func() {
				_, err := b.Lock(r.within(time.Second), "k")
				r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
			}()
			time.Sleep(50 * time.Millisecond)
			_, err := b.Lock(r.within(200*time.Millisecond), "k")
			r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
			time.Sleep(time.Second)
		})
	})
	t.Run("no deadline, all nodes slower than the node time-out", func(t *testing.T) {
		t.Parallel()
		for _, ignored := range []time.Duration{0, time.Minute} {
			inBubble(t, 5, func(r *rig) {
				u := r.user(redlock.Config{})
				r.warm(u)
				for _, n := range r.nodes {
					n.Faults().IgnoreDeadlines(ignored)
				}
				slow(time.Second, r.nodes...)
				err := r.try(u, "k")
				r.wantIs(err, redlock.ErrNoQuorum)
				if n := len(r.round(err).Errs); n < 3 {
					t.Errorf("%d nodes are named, want those that gave no vote: %v", n, err)
				}
				for _, node := range r.round(err).Errs {
					if errors.Is(node, context.DeadlineExceeded) || errors.Is(node, context.Canceled) {
						t.Errorf("%v looks like an end of the caller's context", node)
					}
				}
				time.Sleep(2 * time.Minute)
			})
		}
	})
}

// leandromoreira/redlock-rb 108; moira-alert/moira 680: an outage or missing rights were answered
// as "somebody has it".
func TestCaseBrokenIsNeverBusy(t *testing.T) {
	t.Parallel()
	const noAuth = "NOAUTH Authentication required."
	const noPerm = "NOPERM User app has no permissions to run the 'evalsha' command"
	for _, c := range []struct {
		name  string
		held  int // nodes that a rival has
		fault func(n *fakenode.Node)
		of    int // the nodes at fault
		want  error
		says  string
	}{
		{"all want a password", 0, func(n *fakenode.Node) { n.Refuse(noAuth) }, 5,
			redlock.ErrNoQuorum, "NOAUTH"},
		{"all refuse the script", 0, func(n *fakenode.Node) { n.Refuse(noPerm, "acquire", "admit") }, 5,
			redlock.ErrNoQuorum, "NOPERM"},
		{"two held, three refuse", 2, func(n *fakenode.Node) { n.Refuse(noPerm, "acquire") }, 3,
			redlock.ErrNoQuorum, "NOPERM"},
		{"three held, two down", 3, func(n *fakenode.Node) { n.Faults().Down(true) }, 2,
			redlock.ErrHeld, ""},
		{"two held, two down", 2, func(n *fakenode.Node) { n.Faults().Down(true) }, 2,
			redlock.ErrNoQuorum, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				u := r.user(redlock.Config{})
				r.warm(u)
				for _, n := range r.nodes[:c.held] {
					n.Set("k", "ql1:A/1", time.Minute)
				}
				if c.want == redlock.ErrNoQuorum && c.says == "" {
					r.nodes[2].Set("k", "ql1:C/1", time.Minute) // a third's
				}
				for _, n := range r.nodes[5-c.of:] {
					c.fault(n)
				}
				err := r.try(u, "k")
				r.wantIs(err, c.want)
				round := r.round(err)
				if round.Quorum != 3 || round.Nodes != 5 {
					t.Errorf("quorum %d of %d, want 3 of 5", round.Quorum, round.Nodes)
				}
				for _, node := range round.Errs {
					if !strings.Contains(node.Error(), c.says) || node.Op != "lock" {
						t.Errorf("%v, want %q of op lock", node, c.says)
					}
				}
				if c.says != "" && len(round.Errs) < 3 {
					t.Errorf("%d nodes say why, want at least 3", len(round.Errs))
				}
				if !strings.Contains(err.Error(), "k") ||
					!strings.Contains(err.Error(), fmt.Sprintf("%d of 5 votes, 3 needed", round.Votes)) {
					t.Errorf("got text %q, want name and counts", err)
				}
			})
		})
	}
}

// go-redsync/redsync 144, 158: extend after expiry said "already taken".
func TestCaseExtendAfterExpiryIsALoss(t *testing.T) {
	t.Parallel()
	for _, rival := range []bool{false, true} {
		t.Run(fmt.Sprint("rival: ", rival), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				a := r.user(redlock.Config{TTL: 200 * time.Millisecond})
				l := r.take(a, "k", redlock.WithoutRenewal())
				time.Sleep(250 * time.Millisecond)
				if rival {
					r.take(r.user(redlock.Config{}), "k")
				}
				time.Sleep(50 * time.Millisecond)
				err := l.Extend(r.Context())
				r.wantIs(err, redlock.ErrLost)
				if !strings.Contains(err.Error(), "its validity is over") {
					t.Errorf("got %v, want the reason", err)
				}
			})
		})
	}
}

// mike-marcacci/node-redlock 65, 11: unlock after expiry, and while nodes refuse writes, failed
// without a word.
func TestCaseUnlockWhileNodesRefuseWrites(t *testing.T) {
	t.Parallel()
	const misconf = "MISCONF Redis is configured to save RDB snapshots, but it is unable to persist"
	for _, refusing := range []int{1, 3} {
		t.Run(fmt.Sprint(refusing, " nodes"), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				l := r.take(r.user(redlock.Config{}), "k")
				for _, n := range r.nodes[:refusing] {
					n.Refuse(misconf, "release")
				}
				err := l.Unlock(r.Context())
				if refusing < 3 {
					r.wantIs(err)
				} else {
					r.wantIs(err, redlock.ErrNoQuorum)
					for _, node := range r.round(err).Errs {
						if !strings.Contains(node.Error(), "MISCONF") || node.Node == "" {
							t.Errorf("got %v, want the node and its MISCONF", node)
						}
					}
				}
				synctest.Wait()
				r.wantKeys("k", refusing)
				for _, n := range r.nodes[:refusing] {
					n.Refuse("", "release")
				}
				r.wantIs(l.Unlock(r.Context()))
				time.Sleep(1500 * time.Millisecond)
				r.wantKeys("k", 0)
			})
		})
	}
}
