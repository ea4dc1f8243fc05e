package exclusion

import "github.com/quorumlock/quorumlock/internal/model/search"

// Next adds everything that can happen in s.
func (m *model) Next(s State, steps *search.Steps[State]) {
	if s.now < m.LastTime {
		t := s
		t.now++
		steps.Add(t, "time %d", t.now)
	}
	for k := range m.attempts {
		m.clientActs(s, k, steps)
		for i := range s.nodes {
			m.nodeAnswers(s, k, i, steps)
		}
	}
	for i := range s.nodes {
		m.nodeFails(s, i, steps)
	}
}

// clientActs adds what attempt k's client can do by itself.
func (m *model) clientActs(s State, k int, steps *search.Steps[State]) {
	switch s.attempts[k].phase {
	case idle:
		if m.mayStart(s, k) {
			m.starts(s, k, steps)
		}
	case asking:
		m.winsOrGivesUp(s, k, steps)
	case holding:
		m.extends(s, k, steps)
		if m.Unlocks {
			steps.Add(s.ended(k), "%s unlocks, sends releases", m.names[k])
		}
	}
}

// mayStart: attempts of one client follow one another, at once or later.
func (m *model) mayStart(s State, k int) bool {
	for j := range k {
		if m.Attempts[j] == m.Attempts[k] && s.attempts[j].phase != over {
			return false
		}
	}
	return true
}

func (m *model) starts(s State, k int, steps *search.Steps[State]) {
	s.attempts[k] = attempt{phase: asking, startedAt: s.now}
	for i := range s.nodes {
		s.nodes[i].acquire.Add(k)
	}
	steps.Add(s, "%s starts a round", m.names[k])
}

func (m *model) winsOrGivesUp(s State, k int, steps *search.Steps[State]) {
	votes := 0
	for i := range s.nodes {
		if s.nodes[i].voteFor.Has(k) {
			votes++
		}
	}
	if votes >= m.quorum {
		t := s
		from := s.attempts[k].startedAt
		if !m.Rules.FromFirstByte {
			from = s.now
		}
		t.attempts[k] = attempt{phase: holding, validUntil: from + m.TTL}
		steps.Add(t, "%s WINS, valid until %d", m.names[k], from+m.TTL)
	}
	if m.GivesUp {
		steps.Add(s.ended(k), "%s gives up, sends releases", m.names[k])
	}
}

// extends adds the beginning or the end of an extend. When it ends, the nodes that did not
// answer, or no longer held the key, are planted.
func (m *model) extends(s State, k int, steps *search.Steps[State]) {
	a := &s.attempts[k]
	if !a.extending {
		if k == 0 && a.extends < m.Extends {
			a.extending, a.extendSince = true, s.now
			a.extends++
			for i := range s.nodes {
				s.nodes[i].extend.Add(k)
			}
			steps.Add(s, "%s starts to extend", m.names[k])
		}
		return
	}
	extended := 0
	for i := range s.nodes {
		if s.nodes[i].extendedFor.Has(k) {
			extended++
		}
	}
	if extended < m.quorum {
		return
	}
	a.validUntil = max(a.validUntil, a.extendSince+m.ExtendTTL)
	a.extending, a.extendSince = false, 0
	for i := range s.nodes {
		if !s.nodes[i].extendedFor.Has(k) {
			s.nodes[i].plant.Add(k)
		}
	}
	steps.Add(s, "%s EXTENDED, valid until %d, sends plants", m.names[k], a.validUntil)
}
