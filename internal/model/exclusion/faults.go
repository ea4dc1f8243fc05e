package exclusion

import "github.com/quorumlock/quorumlock/internal/model/search"

// nodeFails adds what can befall node i. Messages to it outlive its restart: a client library may
// send them again.
func (m *model) nodeFails(s State, i int, steps *search.Steps[State]) {
	if s.restarts > 0 {
		t := s
		t.restarts--
		n := &t.nodes[i]
		n.owner, n.until, n.waitsUntil = 0, 0, s.now+m.MaxTTL
		steps.Fault(t, "node %d RESTARTS empty", i+1)
		if n.saved {
			n.owner, n.until = n.savedOwner, n.savedUntil
			steps.Fault(t, "node %d RESTARTS from its snapshot", i+1)
		}
	}
	if s.snapshots > 0 && s.nodes[i].owner != 0 {
		s.snapshots--
		n := &s.nodes[i]
		n.saved, n.savedOwner, n.savedUntil = true, n.owner, n.until
		steps.Fault(s, "node %d saves a snapshot", i+1)
	}
}
