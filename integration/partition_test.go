package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Cuts between clients and nodes: also in one direction, of one client alone, in the middle of a
// reply.

// kubernetes/kubernetes 23731: the old leader, cut off from the majority, went on. Here it is told
// before its rival can win, however the way is broken.
func TestAHolderCutFromTheMajorityIsToldBeforeARivalWins(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]func(*Way) error{
		"both ways": (*Way).Cut, "requests lost": (*Way).LoseRequests, "replies lost": (*Way).LoseReplies,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := on(t, 5)
			b := r.admitted(redlock.Config{})
			a, ways := r.apart(redlock.Config{})
			s := r.contest(a, "k")
			each(r, 3, ways, cut)
			if !s.rival(r, b, 4*ttl) {
				t.Fatal("the rival never gets it")
			}
			r.lostWithin(0, s.first)
			each(r, 3, ways, (*Way).Heal)
			if err := s.first.Extend(t.Context()); !errors.Is(err, redlock.ErrLost) {
				t.Errorf("extend, healed: %v, want ErrLost", err)
			}
			_ = s.first.Unlock(t.Context())
			r.held(s.second)
			r.free(s.second)
			r.gone(2*ttl, "k")
		})
	}
}

func TestAHolderCutFromAMinorityHoldsOn(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]func(*Way) error{
		"both ways": (*Way).Cut, "requests lost": (*Way).LoseRequests, "replies lost": (*Way).LoseReplies,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := on(t, 5)
			b := r.admitted(redlock.Config{})
			a, ways := r.apart(redlock.Config{})
			s := r.contest(a, "k")
			each(r, 2, ways, cut)
			if s.rival(r, b, 2*ttl) {
				t.Error("the rival has it")
			}
			r.held(s.first)
			r.quick(a, 20) // at the speed of the healthy three
			each(r, 2, ways, (*Way).Heal)
			r.must(s.first.Extend(t.Context()))
			r.everywhere(b, "k") // again
			r.free(s.first)
			r.gone(2*ttl, "k")
		})
	}
}

// redisson/redisson 3194, 3712: after a cut that cost the lock, the next one of the name was taken
// and never renewed.
func TestALockAfterACutIsRenewedLikeAnyOther(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	b := r.admitted(redlock.Config{})
	a, ways := r.apart(redlock.Config{})
	first := r.take(a, "k")
	each(r, 3, ways, (*Way).Cut)
	r.lostWithin(ttl+time.Second, first)
	r.refused(a, "k", redlock.ErrNoQuorum)
	each(r, 3, ways, (*Way).Heal)
	s := &struggle{first: r.takeWithin(3*ttl, a, "k")}
	if s.first.Token() <= first.Token() {
		t.Errorf("token %d after %d", s.first.Token(), first.Token())
	}
	if s.rival(r, b, 4*ttl) {
		t.Error("the rival has it")
	}
	r.held(s.first)
	r.free(s.first)
}

// redisson/redisson 775: one failed renewal ended renewing for good.
func TestACutShorterThanTheValidityCostsNothing(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	b := r.admitted(redlock.Config{TTL: 6 * time.Second})
	a, ways := r.apart(redlock.Config{TTL: 6 * time.Second})
	s := r.contest(a, "k")
	each(r, 5, ways, (*Way).Cut)
	s.rival(r, b, 2500*time.Millisecond) // longer than a renewal, shorter than what is left
	each(r, 5, ways, (*Way).Heal)
	if s.rival(r, b, 12*time.Second) {
		t.Error("the rival has it")
	}
	r.held(s.first)
}

// A round whose replies are lost took the lock on the nodes and does not know it.
func TestATryWithoutRepliesLeavesNothingForLong(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	b := r.admitted(redlock.Config{})
	a, ways := r.apart(redlock.Config{})
	r.free(r.take(a, "k")) // connections are made, and the nodes known
	each(r, 3, ways, (*Way).LoseReplies)
	r.refused(a, "k", redlock.ErrNoQuorum)
	each(r, 3, ways, (*Way).Heal)
	began := time.Now()
	r.free(r.takeWithin(2*ttl, b, "k"))
	t.Logf("free %v after the cut", time.Since(began).Round(time.Millisecond))
	r.gone(2*ttl, "k")
}

func TestRepliesThatEndInTheMiddleAreNoVotes(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	b := r.admitted(redlock.Config{})
	a, ways := r.apart(redlock.Config{})
	for _, bytes := range []int{1, 7, 40, 400} {
		each(r, 3, ways, func(w *Way) error { return w.Shorten(bytes) })
		if l, err := a.TryLock(t.Context(), "k"); err == nil {
			if bytes < 40 {
				t.Errorf("a lock from replies of %d bytes", bytes)
			}
			r.held(l) // it was enough for a round
			r.must(ignore(l.Unlock(t.Context()), redlock.ErrNoQuorum))
		} else if !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("%d bytes: got %v, want ErrNoQuorum", bytes, err)
		}
		each(r, 3, ways, (*Way).Heal)
		r.free(r.takeWithin(3*ttl, b, "k"))
	}
	r.free(r.takeWithin(3*ttl, a, "k"))
}

// ignore is err, or nil if it is of this kind.
func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

func TestConnectionsThatEndCostNoLock(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	for range 8 {
		each(r, 5, r.Nodes, func(n *Node) error { return n.Drop() })
		if s.rival(r, b, ttl/4) {
			t.Fatal("the rival has it")
		}
	}
	r.held(s.first)
	r.must(s.first.Extend(t.Context()))
	r.free(s.first)
	failed := 0
	for i := range 20 {
		each(r, 5, r.Nodes, func(n *Node) error { return n.Drop() })
		if l, err := a.TryLock(t.Context(), fmt.Sprint("k", i)); err != nil {
			failed++
		} else {
			_ = l.Unlock(t.Context())
		}
	}
	t.Logf("%d of 20 rounds failed right after a drop of everything", failed)
	r.free(r.takeWithin(ttl, a, "after"))
}

// Another minority each second.
func TestCutsThatMoveFromNodeToNodeCostNoLock(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	b := r.admitted(redlock.Config{})
	a, ways := r.apart(redlock.Config{})
	s := r.contest(a, "k")
	for i := range 8 {
		one, other := ways[i%5], ways[(i+2)%5]
		r.must(one.Cut(), other.LoseReplies())
		if s.rival(r, b, time.Second) {
			t.Fatal("the rival has it")
		}
		r.must(one.Heal(), other.Heal())
		// The key comes back to a node that missed renewals, by the next one.
		r.must(ignore(s.first.Extend(t.Context()), redlock.ErrNoQuorum))
	}
	r.held(s.first)
	r.free(s.first)
}

// Two clients, each of which reaches a minority that the other does not, and one node between them.
func TestTwoSidesNeverBothHold(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	r.admitted(redlock.Config{})
	a, left := r.apart(redlock.Config{Identity: "left"})
	b, right := r.apart(redlock.Config{Identity: "right"})
	r.must(left[0].Cut(), left[1].Cut(), right[3].Cut(), right[4].Cut())
	for range 8 {
		s := &struggle{first: r.takeWithin(2*ttl, a, "k")}
		if s.rival(r, b, 200*time.Millisecond) {
			t.Fatal("the other side has it")
		}
		r.held(s.first)
		r.free(s.first)
		r.free(r.takeWithin(2*ttl, b, "k"))
	}
}
