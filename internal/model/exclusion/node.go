package exclusion

import "github.com/quorumlock/quorumlock/internal/model/search"

// nodeAnswers adds the arrival at node i of each message that attempt k has under way to it.
func (m *model) nodeAnswers(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if n.acquire.Has(k) {
		m.answersAcquire(s, k, i, steps)
	}
	if n.extend.Has(k) {
		m.answersExtend(s, k, i, steps)
	}
	if n.plant.Has(k) {
		m.answersPlant(s, k, i, steps)
	}
	if n.release.Has(k) {
		m.answersRelease(s, k, i, steps)
	}
}

// answersAcquire: a refused contender may ask again, but needs no step for it: an acquire that is
// under way for longer comes to the same.
func (m *model) answersAcquire(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	n.acquire.Remove(k)
	granted := n.owner == m.token(k) // a lost reply, asked for again
	if n.owner == 0 && (n.waitsUntil == 0 || !m.Rules.Guard) {
		granted = true
	}
	if granted {
		n.owner, n.until = m.token(k), s.now+m.TTL
	}
	// A reply that is lost and one that nobody waits for any more come to the same.
	if m.LostReplies && granted && s.attempts[k].phase == asking {
		m.arrives(s, k, i, steps, "node %d grants %s, the reply is lost")
	}
	if granted {
		n.voteFor.Add(k)
		m.arrives(s, k, i, steps, "node %d grants %s")
	} else {
		m.arrives(s, k, i, steps, "node %d refuses %s")
	}
}

// arrives adds s, the state after attempt k's acquire came to node i, once as it is and once with
// a duplicate of the acquire still under way.
func (m *model) arrives(s State, k, i int, steps *search.Steps[State], format string) {
	steps.Add(s, format, i+1, m.names[k])
	if s.duplicates > 0 {
		s.duplicates--
		s.nodes[i].acquire.Add(k)
		steps.Fault(s, format+"; a duplicate is under way", i+1, m.names[k])
	}
}

// answersExtend: it needs no guard. A node that has our key has not forgotten it - which is true
// only because no key ever comes to a node without memory, see GuardPlants.
func (m *model) answersExtend(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	n.extend.Remove(k)
	own := n.owner == m.token(k)
	if own {
		until := s.now + m.ExtendTTL
		if m.Rules.ExtendNeverShortens {
			until = max(until, n.until)
		}
		n.until = until
	}
	if s.attempts[k].extending && (own || !m.Rules.ExtendOwnKey) {
		n.extendedFor.Add(k)
	}
	steps.Add(s, "node %d extends %s: %t", i+1, m.names[k], own)
}

func (m *model) answersPlant(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	n.plant.Remove(k)
	planted := n.owner == 0 && (n.waitsUntil == 0 || !m.Rules.GuardPlants)
	waits := n.waitsUntil != 0
	if planted {
		n.owner, n.until = m.token(k), s.now+m.TTL
	}
	steps.Add(s, "node %d plants %s: %t (it waits: %t)", i+1, m.names[k], planted, waits)
}

func (m *model) answersRelease(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	n.release.Remove(k)
	released := n.owner == m.token(k) || !m.Rules.ReleaseOwnKey
	if released {
		n.owner, n.until = 0, 0
	}
	steps.Add(s, "node %d releases %s: %t", i+1, m.names[k], released)
}
