package tick

import (
	"github.com/quorumlock/quorumlock/internal/model/bitset"
	"github.com/quorumlock/quorumlock/internal/model/search"
)

// replicasCrash adds the death of each replica. What it has sent still arrives.
func (m *model) replicasCrash(s State, steps *search.Steps[State]) {
	if s.crashes == 0 {
		return
	}
	s.crashes--
	for r := range m.replicas {
		if !s.dead.Has(r) {
			t := s
			t.dead.Add(r)
			steps.Fault(t, "replica %c CRASHES", 'A'+rune(r))
		}
	}
}

// nodeFails adds what can befall node i, and the end of its wait.
func (m *model) nodeFails(s State, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if s.restarts > 0 {
		t := s
		t.restarts--
		t.nodes[i].forgets(s.claims, s.now)
		steps.Fault(t, "node %d RESTARTS empty", i+1)
	}
	// MaxTTL is not counted out: the wait ends at any time after the claims that were valid when
	// it began. Those are not renewed.
	if n.waits && n.forgot&s.claims == 0 {
		t := s
		t.nodes[i].waits, t.nodes[i].forgot = false, 0
		steps.Add(t, "node %d votes again", i+1)
	}
	if s.down > 0 && !n.isDown {
		t := s
		t.down--
		t.nodes[i].isDown = true
		steps.Fault(t, "node %d is DOWN", i+1)
	}
}

// forgets empties the memory of n. What claimers know from it, and what is under way, stays.
func (n *node) forgets(claims bitset.Set, now uint8) {
	if n.owner != 0 {
		claims.Add(int(n.owner) - 1)
	}
	n.owner, n.marks = 0, [maxInstants + 1]mark{}
	n.waits, n.forgot = true, claims
	n.blank = now
}
