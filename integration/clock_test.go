package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// valkey-io/valkey 2651: keys live by their node's wall clock, so that a step ends locks at once,
// or keeps them for an hour.

func TestAMinorityWithSteppedClocksCostsNoLock(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, 5 * time.Second, -5 * time.Second, -time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			t.Parallel()
			r := on(t, 5, WithClock())
			a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
			s := r.contest(a, "k")
			r.within(ttl, "the rival meets it", func() bool { return !s.rival(r, b, time.Millisecond) })
			each(r, 2, r.Nodes, func(n *Node) error { return n.StepClock(step) })
			if s.rival(r, b, 2*ttl) {
				t.Error("the rival has it")
			}
			r.held(s.first)
			r.free(s.first)
			next := r.takeWithin(4*ttl, b, "k")
			if next.Token() <= s.first.Token() {
				t.Errorf("token %d after %d", next.Token(), s.first.Token())
			}
			r.everywhere(b, "k")
			each(r, 2, r.Nodes, func(n *Node) error { return n.StepClock(-step) }) // put right again
			r.answering(b)
			r.free(next)
		})
	}
}

// Nobody can tell a step of the majority from one of his own: the holder ends its lock at its next
// renewal, and the fencing token keeps the two apart until then.
func TestAMajorityWithClocksSteppedForwardEndsTheLock(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithClock())
	// A renewal between two of the steps would find a majority, and heal the rest: the next one is far.
	const long = 4 * ttl
	a, b := r.admitted(redlock.Config{TTL: long}), r.open(redlock.Config{TTL: long})
	first := r.take(a, "k")
	each(r, 3, r.Nodes, func(n *Node) error { return n.StepClock(time.Hour) })
	r.lostWithin(long/3+long/4+2*time.Second, first)
	second := r.takeWithin(4*long, b, "k")
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	r.free(second)
}

func TestAMajorityWithClocksSteppedBackBlocksNobodyForAnHour(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithClock())
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	each(r, 3, r.Nodes, func(n *Node) error { return n.StepClock(-time.Hour) })
	if s.rival(r, b, ttl) {
		t.Error("the rival has it")
	}
	_ = s.first.Unlock(t.Context())
	r.free(r.takeWithin(6*ttl, b, "k"))
}

// The second half of the report: the holder is dead, and its keys stay for an hour on the nodes
// whose clocks were stepped back.
func TestClocksSteppedBackUnderADeadHolderBlockNobody(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithClock())
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	first := r.take(a, "k")
	_, err := first.Detach() // as good as dead: nobody renews it and nobody frees it
	r.must(err)
	each(r, 2, r.Nodes, func(n *Node) error { return n.StepClock(-time.Hour) })
	began := time.Now()
	second := r.takeWithin(4*ttl, b, "k")
	t.Logf("taken %v after the holder's death", time.Since(began).Round(time.Millisecond))
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	r.free(second)
}

// A node restarts on a machine whose clock is an hour off.
func TestARestartWithAWrongClockMakesNoSecondHolder(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			t.Parallel()
			r := on(t, 3, WithClock(), disk)
			a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
			s := r.contest(a, "k")
			n := r.Nodes[0]
			r.must(n.StepClock(step), n.Kill(), n.Start())
			if s.rival(r, b, 3*ttl) {
				t.Error("the rival has it")
			}
			r.held(s.first)
			r.free(s.first)
			r.free(r.takeWithin(2*ttl, b, "k"))
		})
	}
}
