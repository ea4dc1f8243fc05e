package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// replies are what nodes answer that can or will not do what they are asked.
var replies = map[string]string{
	"NOAUTH Authentication required.":                                     "wants a password",
	"WRONGPASS invalid username-password pair or user is disabled.":       "refused the password",
	"NOPERM User default has no permissions to run the 'evalsha' command": "lacks rights",
	"WRONGTYPE Operation against a key holding the wrong kind of value":   "not a lock",
	"READONLY You can't write against a read only replica.":               "read-only",
	"OOM command not allowed when used memory > 'maxmemory'.":             "out of memory",
	"MISCONF Redis is configured to save RDB snapshots, but cannot":       "refuses writes",
	"LOADING Redis is loading the dataset in memory":                      "still loads",
	"BUSY Redis is busy running a script.":                                "busy with somebody's script",
	"MOVED 3999 127.0.0.1:6381":                                           "not an independent node",
	"NOREPLICAS Not enough good replicas to write.":                       "without enough replicas",
	"MASTERDOWN Link with MASTER is down":                                 "lost its primary",
	"ERR something that nobody has heard of":                              "ERR something",
}

// An error reply is a vote that is missing, of a node with a name, and never "held".
func TestErrorRepliesAreErrorVotes(t *testing.T) {
	t.Parallel()
	for text, words := range replies {
		code, _, _ := strings.Cut(text, " ")
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) { errorReplies(r, text, words) })
		})
	}
}

func errorReplies(r *rig, text, words string) {
	u := r.user(redlock.Config{})
	l := r.take(u, "held", redlock.WithoutRenewal())
	ours := r.take(u, "freed")
	says := func(what string, err error) {
		r.Helper()
		r.wantIs(err, redlock.ErrNoQuorum)
		named := map[string]bool{}
		for _, node := range r.round(err).Errs {
			named[node.Node] = true
			if !strings.Contains(node.Error(), text) || !strings.Contains(node.Error(), words) ||
				!strings.Contains(node.Error(), node.Node) {
				r.Errorf("%s: got %q, want address, reply and %q", what, node, words)
			}
			var reply interface{ RedisError() }
			if !errors.As(node, &reply) {
				r.Errorf("%s: %v does not lead to the reply itself", what, node)
			}
		}
		if len(named) != 3 {
			r.Errorf("%s: nodes %v are named, want three", what, named)
		}
	}
	for _, n := range r.nodes[:2] {
		n.Refuse(text)
	}
	r.wantIs(r.take(u, "a minority").Unlock(r.Context()))
	r.wantIs(l.Extend(r.Context()))
	r.nodes[2].Refuse(text)

	says("TryLock", r.try(u, "k"))
	says("Extend", l.Extend(r.Context()))
	r.wantHeld(l)
	says("Unlock", ours.Unlock(r.Context()))
	_, err := u.Lock(r.within(time.Second), "k")
	r.wantIs(err, redlock.ErrNoQuorum, context.DeadlineExceeded)
	err = u.Do(r.within(time.Second), "k", func(context.Context, *redlock.Lock) error { return nil })
	r.wantIs(err, redlock.ErrNoQuorum, context.DeadlineExceeded)

	for _, n := range r.nodes[:3] {
		n.Refuse("")
	}
	time.Sleep(time.Second)
	r.wantIs(ours.Unlock(r.Context()))
	r.wantIs(l.Extend(r.Context()))
	r.take(u, "k")
	synctest.Wait()
	r.wantKeys("k", 5)
}

// Every kind of failure of every call, and that the kinds exclude each other.
func TestEveryErrorHasItsKind(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	fn := func(context.Context, *redlock.Lock) error { return nil }
	down := func(r *rig) {
		for _, n := range r.nodes[:2] {
			n.Faults().Down(true)
		}
	}
	rival := func(r *rig) { r.take(r.user(redlock.Config{TTL: ttl}), "k") }
	type step func(r *rig, u *user) error
	held := func(then func(r *rig, u *user, l *redlock.Lock) error) step {
		return func(r *rig, u *user) error {
			return then(r, u, r.take(u, "k", redlock.WithoutRenewal()))
		}
	}
	for name, c := range map[string]struct {
		do   step
		want []error
	}{
		"TryLock: won":    {func(r *rig, u *user) error { return r.try(u, "k") }, nil},
		"TryLock: held":   {func(r *rig, u *user) error { rival(r); return r.try(u, "k") }, []error{redlock.ErrHeld}},
		"TryLock: down":   {func(r *rig, u *user) error { down(r); return r.try(u, "k") }, []error{redlock.ErrNoQuorum}},
		"TryLock: closed": {func(r *rig, u *user) error { u.Close(); return r.try(u, "k") }, []error{redlock.ErrClosed}},
		"TryLock: while it is being closed": {func(r *rig, u *user) error {
			r.warmAndSlow(u)
			time.AfterFunc(50*time.Millisecond, func() { u.Close() })
			return r.try(u, "k")
		}, []error{redlock.ErrClosed}},
		"TryLock: the deadline passes": {func(r *rig, u *user) error {
			r.warmAndSlow(u)
			_, err := u.TryLock(r.within(50*time.Millisecond), "k")
			return err
		}, []error{redlock.ErrNoQuorum, context.DeadlineExceeded}},
		"Lock: held": {func(r *rig, u *user) error {
			rival(r)
			_, err := u.Lock(r.within(2*ttl), "k")
			return err
		}, []error{redlock.ErrHeld, context.DeadlineExceeded}},
		"Lock: down": {func(r *rig, u *user) error {
			down(r)
			_, err := u.Lock(r.within(2*ttl), "k")
			return err
		}, []error{redlock.ErrNoQuorum, context.DeadlineExceeded}},
		"Lock: closed": {func(r *rig, u *user) error {
			u.Close()
			_, err := u.Lock(r.Context(), "k")
			return err
		}, []error{redlock.ErrClosed}},
		"Do: done": {func(r *rig, u *user) error { return u.Do(r.Context(), "k", fn) }, nil},
		"Do: closed": {func(r *rig, u *user) error {
			u.Close()
			return u.Do(r.Context(), "k", fn)
		}, []error{redlock.ErrClosed}},
		"Extend: prolonged": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			return l.Extend(r.Context())
		}), nil},
		"Extend: down": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			down(r)
			return l.Extend(r.Context())
		}), []error{redlock.ErrNoQuorum}},
		"Extend: the deadline passes": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			slow(100*time.Millisecond, r.nodes...)
			return l.Extend(r.within(50 * time.Millisecond))
		}), []error{redlock.ErrNoQuorum, context.DeadlineExceeded}},
		"Extend: over": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			time.Sleep(2 * ttl)
			return l.Extend(r.Context())
		}), []error{redlock.ErrLost}},
		"Extend: the keys are gone": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			for _, n := range r.nodes {
				n.Delete("k")
			}
			return l.Extend(r.Context())
		}), []error{redlock.ErrLost}},
		"Extend: freed": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			r.wantIs(l.Unlock(r.Context()))
			return l.Extend(r.Context())
		}), []error{redlock.ErrNotHeld}},
		"Extend: closed": {held(func(r *rig, u *user, l *redlock.Lock) error {
			r.wantIs(u.Close())
			return l.Extend(r.Context())
		}), []error{redlock.ErrClosed}},
		"Unlock: freed": {held(func(r *rig, _ *user, l *redlock.Lock) error { return l.Unlock(r.Context()) }), nil},
		"Unlock: down": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			down(r)
			return l.Unlock(r.Context())
		}), []error{redlock.ErrNoQuorum}},
		"Unlock: lost": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			time.Sleep(2 * ttl)
			return l.Unlock(r.Context())
		}), []error{redlock.ErrNotHeld, redlock.ErrLost}},
		"Unlock: lost, and a rival's": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			time.Sleep(2 * ttl)
			rival(r)
			return l.Unlock(r.Context())
		}), []error{redlock.ErrNotHeld, redlock.ErrHeld}},
		"Unlock: a rival's by force": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			r.holds("k", "ql1:B/1", time.Minute)
			return l.Unlock(r.Context())
		}), []error{redlock.ErrNotHeld, redlock.ErrHeld}},
		"Unlock: gone while it was valid": {held(func(r *rig, _ *user, l *redlock.Lock) error {
			for _, n := range r.nodes {
				n.Delete("k")
			}
			return l.Unlock(r.Context())
		}), nil},
		"Unlock: closed": {held(func(r *rig, u *user, l *redlock.Lock) error {
			r.wantIs(u.Close())
			return l.Unlock(r.Context())
		}), []error{redlock.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				err := c.do(r, r.user(redlock.Config{TTL: ttl}))
				r.wantIs(err, c.want...)
				op, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(name, "Try")), ":")
				if op == "do" {
					op = "lock"
				}
				if err == nil {
					return
				}
				if round := r.round(err); round.Op != op || round.Name != "k" {
					t.Errorf("op %q of %q, want %q of \"k\"", round.Op, round.Name, op)
				}
				if text := err.Error(); !strings.HasPrefix(text, fmt.Sprintf("redlock: %s \"k\": ", op)) {
					t.Errorf("got text %q, want package, op and name first", text)
				}
			})
		})
	}
}

// warmAndSlow lets them meet, and makes each answer take 100 ms from then on.
func (r *rig) warmAndSlow(u *user) {
	r.warm(u)
	slow(100*time.Millisecond, r.nodes...)
}
