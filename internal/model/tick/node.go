package tick

import "github.com/quorumlock/quorumlock/internal/model/search"

// nodeActs adds what can happen on node i on behalf of attempt k.
func (m *model) nodeActs(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if n.answers[k].kind == asked {
		m.answersClaim(s, k, i, steps)
	}
	if n.commits.Has(k) {
		m.answersCommit(s, k, i, steps)
	}
	if n.owner == of(k) && !s.claims.Has(k) && !n.isDown {
		t := s
		t.nodes[i].owner = 0
		steps.Add(t, "node %d: %s's claim key ends", i+1, m.names[k])
	}
}

// answersClaim: the answer carries the mark of the instant, if the node has one.
func (m *model) answersClaim(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if n.isDown {
		n.answers[k] = answer{kind: silent}
		steps.Add(s, "%s hears nothing from node %d, which is down", m.names[k], i+1)
		return
	}
	instant := s.attempts[k].instant
	a := answer{kind: refused, mark: m.markFor(s, k, i)}
	knows := instant > n.blank || m.Rules.Memory == Believed
	if n.owner == 0 && !n.waits && (knows || m.Rules.Memory != NoVote) {
		n.owner = of(k)
		a.kind = granted
		if !knows {
			a = answer{kind: blank}
		}
	}
	if a.kind == refused && m.Rules.Ballot && m.Rules.ReadNeedsGrant {
		a.mark = 0 // nobody looks at it
	}
	n.answers[k] = a
	steps.Add(s, "node %d answers %s's claim of T%d: %s", i+1, m.names[k], instant, shown{m, a})
	if s.losses > 0 {
		s.losses--
		n.answers[k] = answer{kind: silent}
		steps.Fault(s, "node %d answers %s's claim of T%d: %s, but that is lost",
			i+1, m.names[k], instant, shown{m, a})
	}
}

// markFor returns the mark that node i has for attempt k's instant.
func (m *model) markFor(s State, k, i int) mark {
	n := &s.nodes[i]
	instant := s.attempts[k].instant
	if !m.Rules.KeepMarks {
		for newer := instant + 1; newer <= m.Instants; newer++ {
			if n.marks[newer] != 0 {
				return hidden
			}
		}
	}
	by := n.marks[instant]
	if by != 0 && m.Rules.OwnAttempts {
		j := int(by) - 1
		if m.replica(j) == m.replica(k) && s.attempts[j].phase == over {
			return 0
		}
	}
	return by
}

func (m *model) answersCommit(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	a := s.attempts[k]
	if n.isDown {
		if a.phase == committing {
			n.commits.Remove(k)
			n.rejected.Add(k)
			steps.Add(s, "%s's commit of T%d to node %d, which is down, times out",
				m.names[k], a.instant, i+1)
		}
		return
	}
	n.commits.Remove(k)
	if !m.takes(s, k, i) {
		n.rejected.Add(k)
		steps.Add(s, "node %d refuses %s's commit of T%d", i+1, m.names[k], a.instant)
		return
	}
	n.marks[a.instant] = of(k)
	if s.losses > 0 {
		t := s
		t.losses--
		steps.Fault(t, "node %d takes %s's commit of T%d, its answer is lost",
			i+1, m.names[k], a.instant)
	}
	n.committed.Add(k)
	steps.Add(s, "node %d takes %s's commit of T%d", i+1, m.names[k], a.instant)
}

// takes reports whether node i accepts attempt k's mark.
func (m *model) takes(s State, k, i int) bool {
	n := &s.nodes[i]
	a := s.attempts[k]
	if n.owner != of(k) && m.Rules.CommitOwnsKey {
		return false
	}
	if !m.Rules.KeepMarks {
		for newer := a.instant + 1; newer <= m.Instants; newer++ {
			if n.marks[newer] != 0 {
				return false
			}
		}
	}
	by := n.marks[a.instant]
	if by == 0 || by == of(k) {
		return true
	}
	return m.Rules.Ballot && a.token > s.attempts[by-1].token
}

// shown is an answer as text, made only when a trace wants it.
type shown struct {
	m *model
	answer
}

func (a shown) String() string {
	text := "refused"
	switch a.kind {
	case granted:
		text = "granted"
	case blank:
		text = "granted, not read"
	}
	switch {
	case a.mark == hidden:
		text += ", there is a newer mark"
	case a.mark != 0:
		text += ", mark of " + a.m.names[a.mark-1]
	}
	return text
}
