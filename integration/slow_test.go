package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Nodes that answer late.

// go-redsync/redsync 140: Lock waited for slow nodes after it had its quorum.
func TestASlowMinorityIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	c := r.admitted(redlock.Config{})
	r.free(r.take(c, "warm"))
	each(r, 2, r.Nodes, func(n *Node) error { return n.Slow(300*time.Millisecond, 0) })
	began := time.Now()
	for i := range 20 {
		r.free(r.take(c, fmt.Sprint("k", i)))
	}
	took := time.Since(began)
	t.Logf("20 locks beside two nodes that take 600 ms: %v", took.Round(time.Millisecond))
	if took > 20*600*time.Millisecond {
		t.Errorf("20 locks took %v: the slow are waited for", took)
	}
	r.gone(2*ttl, "k0")
	r.gone(2*ttl, "k19")
}

// All are slow, yet faster than NodeTimeout.
func TestSlowNodesGiveLocksLate(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a := r.admitted(redlock.Config{TTL: 8 * time.Second})
	b := r.open(redlock.Config{TTL: 8 * time.Second})
	r.free(r.take(a, "warm"))
	each(r, 5, r.Nodes, func(n *Node) error {
		return n.Slow(150*time.Millisecond, 50*time.Millisecond)
	})
	began := time.Now()
	s := &struggle{first: r.takeWithin(8*time.Second, a, "k")}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("a lock after %v: the nodes are not slow", took)
	}
	if left := s.first.Remaining(); left > 8*time.Second-200*time.Millisecond {
		t.Errorf("%v remaining: what the round took is not taken off", left)
	}
	if s.rival(r, b, 10*time.Second) {
		t.Error("the rival has it")
	}
	r.held(s.first)
	r.free(s.first)
}

// A majority is slower than NodeTimeout: no lock, no wrong word, and nothing stays for long.
func TestAMajorityThatIsTooSlowIsNoQuorum(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	c := r.admitted(redlock.Config{NodeTimeout: 250 * time.Millisecond})
	r.free(r.take(c, "warm"))
	each(r, 3, r.Nodes, func(n *Node) error { return n.Slow(400*time.Millisecond, 0) })
	for range 3 {
		began := time.Now()
		_, err := c.TryLock(t.Context(), "k")
		// The time-outs of nodes are not the caller's deadline.
		if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrNoQuorum alone", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v, want 2 x 250 ms", took)
		}
	}
	each(r, 3, r.Nodes, func(n *Node) error { return n.Heal() })
	r.free(r.takeWithin(2*ttl, c, "k"))
	r.gone(2*ttl, "k")
}

// The server itself stands still now and then, as with a fork or a slow command of somebody's.
func TestServersThatStutterCostNoLock(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	for i := range 10 {
		_, err := r.Nodes[i%5].Do(t.Context(), "CLIENT", "PAUSE", 400, "ALL")
		r.must(err)
		_, err = r.Nodes[(i+1)%5].Do(t.Context(), "CLIENT", "PAUSE", 400, "WRITE")
		r.must(err)
		if s.rival(r, b, 500*time.Millisecond) {
			t.Fatal("the rival has it")
		}
	}
	r.held(s.first)
	r.free(s.first)
}
