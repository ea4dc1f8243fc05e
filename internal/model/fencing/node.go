package fencing

import "github.com/quorumlock/quorumlock/internal/model/search"

// nodeActs adds what can happen on node i on behalf of attempt k.
func (m *model) nodeActs(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if n.acquire.Has(k) {
		m.answersAcquire(s, k, i, steps)
	}
	if n.raise.Has(k) {
		m.answersRaise(s, k, i, steps)
	}
	if n.owner == owner(k) && !s.valid.Has(k) {
		t := s
		t.nodes[i].owner = 0
		steps.Add(t, "node %d: %c's key ends", i+1, name(k))
	}
	if m.Plants && s.attempts[k].phase == holding {
		m.plants(s, k, i, steps)
	}
}

// answersAcquire: a key that is already the attempt's own leaves the register as it is, so that an
// acquire sent twice is answered with the same number twice.
func (m *model) answersAcquire(s State, k, i int, steps *search.Steps[State]) {
	n, a := &s.nodes[i], &s.attempts[k]
	n.acquire.Remove(k)
	if n.owner == 0 && !n.waits {
		m.grant(n, k, a.proposal, s.now)
	}
	silent := s // the node's reply does not arrive
	if n.owner == owner(k) && a.phase == asking {
		s.counts(k, i)
	}
	steps.Add(s, "node %d answers %c: owner %d, register %d", i+1, name(k), n.owner, n.register)
	if s.duplicates == 0 {
		return
	}
	s.duplicates--
	n.acquire.Add(k)
	steps.Fault(s, "node %d answers %c: owner %d, register %d; a duplicate is under way",
		i+1, name(k), n.owner, n.register)
	silent.duplicates--
	silent.nodes[i].acquire.Add(k)
	steps.Fault(silent, "node %d answers %c: owner %d, register %d; lost, a duplicate is under way",
		i+1, name(k), n.owner, n.register)
}

// grant makes the lock on n attempt k's.
func (m *model) grant(n *node, k int, proposal, now uint8) {
	if m.Rules.Clamp {
		proposal = min(proposal, now+m.MaxTTL/2)
	}
	register := n.register
	if m.Rules.GrantPastRegister {
		register++
	}
	n.owner = owner(k)
	n.register = max(register, proposal, n.floor)
}

// counts gives attempt k the vote of node i, with the number in its register.
func (s *State) counts(k, i int) {
	n, a := &s.nodes[i], &s.attempts[k]
	n.votes.Add(k)
	if n.register > a.number {
		a.number = n.register
		for j := range s.nodes {
			s.nodes[j].agrees.Remove(k)
		}
	}
	if n.register == a.number {
		n.agrees.Add(k)
	}
}

func (m *model) answersRaise(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	n.raise.Remove(k)
	raised := n.owner == owner(k) || !m.Rules.RaiseOwnKey
	if raised {
		n.register = max(n.register, s.attempts[k].number)
		n.raised.Add(k)
	}
	steps.Add(s, "node %d raises to %d for %c: %t", i+1, s.attempts[k].number, name(k), raised)
}

// plants adds what befalls a holder's key on node i while it is renewed: it comes to a free node,
// judged like an acquire; and it ends on a third node whose extends were lost, while two others
// are kept up. A holder is never left with fewer than a majority here: its validity would end.
func (m *model) plants(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if s.lapses > 0 && n.owner == owner(k) && s.keys(k) == nodes {
		t := s
		t.lapses--
		t.nodes[i].owner = 0
		steps.Fault(t, "node %d: %c's key ends, its extends were lost here", i+1, name(k))
	}
	if n.owner == 0 && !n.waits {
		var proposal uint8
		if m.PlantToken {
			proposal = s.attempts[k].number
		}
		m.grant(n, k, proposal, s.now)
		steps.Add(s, "node %d plants %c, register %d", i+1, name(k), n.register)
	}
}
