package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Nodes that die and come back: with the data they had, or with none.

// disk makes nodes keep all that they were told.
var disk = WithConfig("appendonly yes", "appendfsync always")

// leandromoreira/redlock-rb 60, 129: with a minority down, locking failed or was slow.
func TestADeadMinorityCostsNothing(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	each(r, 2, r.Nodes, (*Node).Kill)
	if s.rival(r, b, 2*ttl) {
		t.Error("the rival has it")
	}
	r.held(s.first)
	r.quick(a, 100)
	each(r, 2, r.Nodes, (*Node).Start)
	r.free(s.first)
}

// The node is alone, so that its vote is seen: after a restart it gives none for MaxTTL, whatever
// it still has.
func TestARestartedNodeDoesNotVoteForMaxTTL(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct{ end, start func(*Node) error }{
		"stopped, same data": {(*Node).Stop, (*Node).Start},
		"killed, same data":  {(*Node).Kill, (*Node).Start},
		"stopped, empty":     {(*Node).Stop, (*Node).StartEmpty},
		"killed, empty":      {(*Node).Kill, (*Node).StartEmpty},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := on(t, 1, disk)
			a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
			r.free(r.take(b, "other"))
			s := r.contest(a, "k")
			n := r.Nodes[0]
			r.must(tc.end(n))
			down := time.Now()
			r.must(tc.start(n))
			r.free(r.takeWithin(4*ttl, b, "other"))
			took := time.Since(down)
			t.Logf("votes %v after it went down", took.Round(time.Millisecond))
			if took < ttl {
				t.Errorf("it voted after %v, want MaxTTL, %v", took, ttl)
			}
			// A node that came back with the key may go on prolonging it; then it is still the
			// first's.
			if s.rival(r, b, ttl) {
				r.free(s.second)
				return
			}
			r.held(s.first)
			r.free(s.first)
			r.free(r.takeWithin(ttl, b, "k"))
		})
	}
}

// A majority dies and comes back empty, while a lock is held: whoever has it next has it alone.
func TestAMajorityThatComesBackEmptyMakesNoSecondHolder(t *testing.T) {
	t.Parallel()
	for count := 1; count <= 5; count++ {
		t.Run(fmt.Sprintf("nodes=%d", count), func(t *testing.T) {
			t.Parallel()
			r := on(t, 5)
			a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
			s := r.contest(a, "k")
			each(r, count, r.Nodes, (*Node).Kill)
			each(r, count, r.Nodes, (*Node).StartEmpty)
			won := s.rival(r, b, 2*ttl)
			if count < 3 {
				if won {
					t.Error("the rival has it, though a minority forgot")
				}
				r.held(s.first)
				r.free(s.first)
				return
			}
			if !won && !s.rival(r, b, 4*ttl) {
				// With a majority's memory gone the holder may still prolong, on nodes that have
				// its key.
				r.free(s.first)
				s.second = r.takeWithin(4*ttl, b, "k")
			}
			r.free(s.second)
		})
	}
}

func TestAMajorityThatComesBackWithItsDataMakesNoSecondHolder(t *testing.T) {
	t.Parallel()
	r := on(t, 5, disk)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	each(r, 3, r.Nodes, (*Node).Kill)
	each(r, 3, r.Nodes, (*Node).Start)
	if s.rival(r, b, 3*ttl) {
		r.free(s.second)
		return
	}
	r.must(ignore(s.first.Unlock(t.Context()), redlock.ErrLost))
	r.free(r.takeWithin(4*ttl, b, "k"))
}

// A power cut: no locks for MaxTTL, and then all is well, without anybody's doing.
func TestAPowerCutCostsMaxTTL(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	each(r, 3, r.Nodes, (*Node).Kill)
	dark := time.Now()
	r.says(b, "k", 2, "")
	each(r, 3, r.Nodes, (*Node).StartEmpty)
	if !s.rival(r, b, 5*ttl) {
		t.Fatal("no locks any more")
	}
	if took := time.Since(dark); took < ttl {
		t.Errorf("a lock after %v, want MaxTTL at least", took)
	}
	for _, n := range b.Nodes(t.Context()) {
		if !n.Reachable {
			t.Errorf("node %s: %v", n.Node, n.Err)
		}
	}
	r.free(s.second)
}

// One node per MaxTTL, under a lock that is held all the time.
func TestARollingRestartCostsNothing(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	for i, n := range r.Nodes {
		r.must(n.Stop(), n.StartEmpty())
		if s.rival(r, b, ttl) {
			t.Fatal("the rival has it")
		}
		r.within(3*ttl, "the node votes again", func() bool {
			status := b.Nodes(t.Context())[i]
			return status.Err == nil
		})
		r.free(r.takeWithin(ttl, b, "other"))
		r.must(s.first.Extend(t.Context()))
	}
	r.held(s.first)
	r.free(s.first)
}

// go-redsync/redsync 186: a lock on a bare majority was lost with the next node. The slow nodes
// have it, too, soon after.
func TestALockSurvivesTheLossOfAnyTwo(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	r.free(r.take(a, "warm"))
	r.must(r.Nodes[0].Slow(50*time.Millisecond, 0), r.Nodes[1].Slow(50*time.Millisecond, 0))
	s := r.contest(a, "k")
	r.must(r.Nodes[2].Kill(), r.Nodes[3].Kill())
	if s.rival(r, b, 2*ttl) {
		t.Error("the rival has it")
	}
	r.must(s.first.Extend(t.Context()))
	r.free(s.first)
}

// A majority is away for longer than the lock lives.
func TestAHolderWithoutAMajorityIsToldInTime(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a := r.admitted(redlock.Config{})
	l := r.take(a, "k")
	each(r, 3, r.Nodes, (*Node).Kill)
	r.lostWithin(ttl+time.Second, l)
	r.refused(a, "k", redlock.ErrNoQuorum)
	if err := l.Unlock(t.Context()); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("unlock of what was lost: %v, want ErrNotHeld", err)
	}
	each(r, 3, r.Nodes, (*Node).Start)
	next := r.takeWithin(4*ttl, a, "k")
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	r.free(next)
}
