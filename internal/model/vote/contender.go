package vote

import "github.com/quorumlock/quorumlock/internal/model/search"

// Next adds everything that can happen in s.
func (m *model) Next(s State, steps *search.Steps[State]) {
	for k := range m.attempts {
		m.starts(s, k, steps)
		if s.crashes > 0 && s.attempts[k].phase == asking {
			t := s
			t.crashes--
			t.attempts[k].phase = crashed
			steps.Fault(t, "%s CRASHES", m.names[k])
		}
		for i := range m.Nodes {
			m.nodeActs(s, k, i, steps)
		}
		if s.attempts[k].phase == asking {
			m.decides(s, k, steps)
		}
	}
}

// starts adds the start of an attempt: the first of its contender, or a new one.
func (m *model) starts(s State, k int, steps *search.Steps[State]) {
	a := &s.attempts[k]
	switch {
	case k >= m.Contenders:
		if a.phase != idle || !m.mayAskAnew(s, k-m.Contenders) {
			return
		}
	case a.phase == yielded && m.AskAnew && !m.Rules.FreshToken:
		if a.anew || !m.mayAskAnew(s, k) {
			return
		}
		a.anew = true
	case a.phase != idle:
		return
	}
	a.phase = asking
	for i := range m.Nodes {
		s.nodes[i].answers[k] = asked
	}
	steps.Add(s, "%s asks", m.names[k])
}

// mayAskAnew reports whether attempt k has yielded, nothing of it is under way any more, and
// nobody holds a majority.
func (m *model) mayAskAnew(s State, k int) bool {
	if s.attempts[k].phase != yielded {
		return false
	}
	var held [maxAttempts + 1]int
	for i := range m.Nodes {
		n := &s.nodes[i]
		if n.release.Has(k) || n.late.Has(k) {
			return false
		}
		held[n.holder]++
	}
	for _, n := range held[1:] {
		if n >= m.majority {
			return false
		}
	}
	return true
}

// decides adds what attempt k does with the answers it has. It wins as soon as it can; for all
// else it waits until every node has answered or timed out.
func (m *model) decides(s State, k int, steps *search.Steps[State]) {
	var held [maxAttempts + 1]int // nodes by holder, as far as it knows
	waits, quiet := 0, 0
	for i := range m.Nodes {
		switch a := s.nodes[i].answers[k]; a {
		case asked:
			waits++
		case silent:
			quiet++
		default:
			held[a.holder()]++
		}
	}
	if held[of(k)] >= m.majority {
		s.attempts[k].phase = won
		steps.Add(s, "%s WINS", m.names[k])
		return
	}
	if waits > 0 {
		return
	}
	switch best := m.best(held, k); {
	case m.rivalHolds(held, k):
		m.leaves(s, k, gaveUp, steps, "sees a majority of another and gives up")
	case best == of(k) && quiet == m.Nodes:
		m.leaves(s, k, gaveUp, steps, "hears no node and gives up")
	case best == of(k) || s.attempts[k].stays:
		s.attempts[k].stays = !m.Rules.Reevaluate
		m.asksAgain(s, k, func(a answer) bool { return a.holder() != of(k) }, steps)
	case m.Rules.AskSilent && quiet > 0 && !s.attempts[k].askedOnce:
		s.attempts[k].askedOnce = true
		m.asksAgain(s, k, func(a answer) bool { return a == silent }, steps)
	default:
		m.leaves(s, k, yielded, steps, "yields")
	}
}

// best returns who is to stay, as attempt k sees it: the one with the most nodes, of several the
// one with the smallest token; 0 if nobody is.
func (m *model) best(held [maxAttempts + 1]int, k int) holder {
	if !m.Rules.LeaderStays {
		return 0
	}
	best, tie := of(k), false
	for h := of(0); h <= of(m.attempts-1); h++ {
		if h == of(k) {
			continue
		}
		tie = tie || held[h] == held[of(k)]
		if held[h] > held[best] || held[h] == held[best] && h < best {
			best = h
		}
	}
	if tie && !m.Rules.BreakTies && held[best] == held[of(k)] {
		return 0
	}
	return best
}

// rivalHolds reports whether attempt k sees one other token on a majority.
func (m *model) rivalHolds(held [maxAttempts + 1]int, k int) bool {
	for h := of(0); h <= of(m.attempts-1); h++ {
		if h != of(k) && held[h] >= m.majority {
			return true
		}
	}
	return false
}

func (m *model) asksAgain(s State, k int, again func(answer) bool, steps *search.Steps[State]) {
	for i := range m.Nodes {
		if a := &s.nodes[i].answers[k]; again(*a) {
			*a = asked
		}
	}
	steps.Add(s, "%s asks again", m.names[k])
}

// leaves ends an attempt and sends its releases.
func (m *model) leaves(s State, k int, as phase, steps *search.Steps[State], how string) {
	s.attempts[k].phase = as
	for i := range m.Nodes {
		if !s.nodes[i].dead {
			s.nodes[i].release.Add(k)
		}
	}
	steps.Add(s, "%s %s", m.names[k], how)
}
