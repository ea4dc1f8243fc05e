package redlock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Rounds of up to five nodes have room of their own, those of more do not; and one node is a
// majority. What a lock does is the same with all numbers.
func TestAnyNumberOfNodes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5, 6, 7, 9} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			inBubble(t, n, func(r *rig) { r.anyNumber((n - 1) / 2) })
		})
	}
}

// anyNumber goes through what a lock does, with as many nodes away as can be done without.
func (r *rig) anyNumber(spare int) {
	a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
	r.warm(a)
	r.warm(b)

	l := r.take(a, "k")
	r.wantKeys("k", len(r.nodes))
	err := r.try(b, "k")
	r.wantIs(err, redlock.ErrHeld)
	if round := r.round(err); round.Nodes != len(r.nodes) || round.Quorum != len(r.nodes)/2+1 {
		r.Errorf("a round of %d nodes and a quorum of %d", round.Nodes, round.Quorum)
	}
	r.wantIs(l.Extend(r.Context()))
	for i := range spare {
		a.cut(true, i)
	}
	time.Sleep(3 * redlock.DefaultTTL) // renewals
	r.wantHeld(l)
	r.wantIs(l.Unlock(r.Context()))
	for i := range spare {
		a.cut(false, i)
	}
	time.Sleep(redlock.DefaultTTL)
	r.wantKeys("k", 0)

	next := r.take(b, "k")
	if next.Token() <= l.Token() {
		r.Errorf("token %d after %d", next.Token(), l.Token())
	}
	r.wantIs(next.Unlock(r.Context()))
	r.oneOf(a, b)
}

// oneOf lets both try at once: one gets it.
func (r *rig) oneOf(users ...*user) {
	var wg sync.WaitGroup
	errs := make([]error, len(users))
	for i, u := range users {
		wg.Go(func() { _, errs[i] = u.TryLock(r.Context(), "both") })
	}
	wg.Wait()
	synctest.Wait()
	got := 0
	for _, err := range errs {
		if err == nil {
			got++
		} else if !errors.Is(err, redlock.ErrHeld) {
			r.Errorf("who does not get it: %v, want ErrHeld", err)
		}
	}
	if got != 1 {
		r.Errorf("%d got it, want one", got)
	}
	time.Sleep(redlock.DefaultTTL) // what the other had, too: by renewals
	r.wantKeys("both", len(r.nodes))
}
