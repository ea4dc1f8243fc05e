package fencing

import "github.com/quorumlock/quorumlock/internal/model/search"

// Next adds everything that can happen in s.
func (m *model) Next(s State, steps *search.Steps[State]) {
	if s.now < m.LastTime {
		t := s
		t.now++
		steps.Add(t, "true time %d", t.now)
	}
	for k := range m.Attempts {
		m.clientActs(s, k, steps)
		for i := range s.nodes {
			m.nodeActs(s, k, i, steps)
		}
	}
	for i := range s.nodes {
		m.restarts(s, i, steps)
		m.votesAgain(s, i, steps)
	}
}

// clientActs adds what attempt k's client can do by itself.
func (m *model) clientActs(s State, k int, steps *search.Steps[State]) {
	a := s.attempts[k]
	switch a.phase {
	case idle:
		m.starts(s, k, steps)
	case asking:
		m.decides(s, k, steps)
	case raising:
		if s.count(func(n *node) bool { return n.raised.Has(k) }) >= quorum {
			m.wins(s, k, a.number, steps)
		}
	}
	if s.valid.Has(k) {
		t := s
		t.valid.Remove(k)
		steps.Add(t, "%c's validity ends, or it gives up or unlocks", name(k))
	}
}

// starts: the clients are alike, so they start in their order. A client's clock may show anything
// within the bounds.
func (m *model) starts(s State, k int, steps *search.Steps[State]) {
	if k > 0 && s.attempts[k-1].phase == idle {
		return
	}
	s.valid.Add(k)
	for i := range s.nodes {
		s.nodes[i].acquire.Add(k)
	}
	for p := s.now - m.Behind; p <= s.now+m.Ahead; p++ {
		s.attempts[k] = attempt{phase: asking, proposal: p, startedAt: s.now}
		steps.Add(s, "%c asks and proposes %d", name(k), p)
	}
}

// decides: with a majority of votes, and the largest answer from a majority, that number is the
// token; else the register is first raised to it where the key is still ours.
func (m *model) decides(s State, k int, steps *search.Steps[State]) {
	if s.count(func(n *node) bool { return n.votes.Has(k) }) < quorum {
		return
	}
	a := &s.attempts[k]
	agreed := s.count(func(n *node) bool { return n.agrees.Has(k) }) >= quorum
	if agreed || !m.Rules.RaiseFirst {
		m.wins(s, k, a.number, steps)
		return
	}
	a.phase = raising
	for i := range s.nodes {
		s.nodes[i].raise.Add(k)
	}
	steps.Add(s, "%c has votes with different numbers, raises to %d", name(k), a.number)
}

func (m *model) wins(s State, k int, token uint8, steps *search.Steps[State]) {
	before := s.highest
	for j := range m.Attempts {
		if s.attempts[j].phase == holding && s.valid.Has(j) {
			s.fault = twoHolders
		}
	}
	if token <= before {
		s.fault = tokenDoesNotGrow
	}
	s.highest = max(before, token)
	s.attempts[k].phase, s.attempts[k].number = holding, token
	steps.Add(s, "%c HOLDS with token %d (highest before: %d)", name(k), token, before)
}

// count returns how many nodes satisfy is.
func (s *State) count(is func(*node) bool) int {
	c := 0
	for i := range s.nodes {
		if is(&s.nodes[i]) {
			c++
		}
	}
	return c
}
