package tick

import (
	"strings"

	"github.com/quorumlock/quorumlock/internal/model/search"
)

// Next adds everything that can happen in s.
func (m *model) Next(s State, steps *search.Steps[State]) {
	if s.now < m.Instants {
		t := s
		t.now++
		steps.Add(t, "instant T%d comes", t.now)
	}
	m.replicasCrash(s, steps)
	for k := range m.attempts {
		if s.claims.Has(k) {
			t := s
			t.claims.Remove(k)
			steps.Add(t, "%s's claim ends", m.names[k])
		}
		if !s.dead.Has(m.replica(k)) {
			m.claimerActs(s, k, steps)
		}
		for i := range s.nodes {
			m.nodeActs(s, k, i, steps)
		}
	}
	for i := range s.nodes {
		m.nodeFails(s, i, steps)
	}
}

// claimerActs adds what attempt k can do by itself.
func (m *model) claimerActs(s State, k int, steps *search.Steps[State]) {
	switch s.attempts[k].phase {
	case idle:
		if m.mayStart(s, k) {
			m.starts(s, k, steps)
		}
	case claiming:
		m.decides(s, k, steps)
	case committing:
		m.runs(s, k, steps)
	}
}

// mayStart: the attempts of a replica follow one another, each after the claim of the one before
// is over. Replicas that are alike start in their order, unless one is dead.
func (m *model) mayStart(s State, k int) bool {
	if m.follows(k) {
		return s.attempts[k-1].phase >= ran && !s.claims.Has(k-1)
	}
	if k == 0 || s.dead.Has(m.replica(k)-1) {
		return true
	}
	if m.InTurn {
		return s.attempts[k-1].phase >= ran
	}
	first := strings.IndexByte(m.Attempts, m.Attempts[k]-1)
	return !m.alike || s.attempts[first].phase != idle
}

func (m *model) starts(s State, k int, steps *search.Steps[State]) {
	newest := s.now
	if !m.Rules.NotBeforeInstant {
		newest = m.Instants
	}
	s.claims.Add(k)
	for i := range s.nodes {
		s.nodes[i].answers[k] = answer{kind: asked}
	}
	for instant := uint8(1); instant <= newest; instant++ {
		if m.follows(k) && s.attempts[k-1].phase == ran && s.attempts[k-1].instant == instant {
			continue // it has run that one itself
		}
		s.attempts[k] = attempt{phase: claiming, instant: instant}
		steps.Add(s, "%s claims T%d", m.names[k], instant)
	}
}

// decides adds what a claimer does once it owns the claim lock, or cannot get it.
func (m *model) decides(s State, k int, steps *search.Steps[State]) {
	owns := s.count(func(n *node) bool { return n.answers[k].kind >= granted })
	asked := s.count(func(n *node) bool { return n.answers[k].kind == asked })
	valid := s.claims.Has(k)
	if owns >= quorum && valid {
		t := s
		t.token++
		a := &t.attempts[k]
		a.token = t.token
		if m.mayCommit(s, k) {
			a.phase = committing
			for i := range t.nodes {
				t.nodes[i].commits.Add(k)
			}
			steps.Add(t, "%s owns the claim of T%d, token %d, and sends commits",
				m.names[k], a.instant, a.token)
		} else {
			a.phase = over
			t.claims.Remove(k)
			steps.Add(t, "%s owns the claim of T%d, which is taken or undecided",
				m.names[k], a.instant)
		}
	}
	if owns < quorum && asked == 0 || !valid {
		s.attempts[k].phase = over
		s.claims.Remove(k)
		steps.Add(s, "%s did not get the claim of T%d", m.names[k], s.attempts[k].instant)
	}
}

// mayCommit reports whether attempt k's answers show that nobody can have run its instant: no
// other claimer has its marks on a majority, even if they were on all nodes that were not read.
func (m *model) mayCommit(s State, k int) bool {
	var marks [maxAttempts + 2]int
	notRead := 0
	for i := range s.nodes {
		switch a := s.nodes[i].answers[k]; {
		case a.kind == refused && !m.Rules.ReadNeedsGrant, a.kind == granted && a.mark != hidden:
			marks[a.mark]++
		default:
			notRead++
		}
	}
	marks[0] = 0 // nodes without a mark
	most, sum := 0, 0
	for _, n := range marks {
		most = max(most, n)
		sum += n
	}
	switch {
	case !m.Rules.Ballot: // what was not read is overlooked
		seen := s.count(func(n *node) bool { return n.answers[k].mark != 0 })
		return seen < quorum
	case !m.Rules.PerOwner:
		return sum+notRead < quorum
	}
	return most+notRead < quorum
}

// runs adds the end of a commit.
func (m *model) runs(s State, k int, steps *search.Steps[State]) {
	committed := s.count(func(n *node) bool { return n.committed.Has(k) })
	rejected := s.count(func(n *node) bool { return n.rejected.Has(k) })
	underWay := s.count(func(n *node) bool { return n.commits.Has(k) })
	valid := s.claims.Has(k)
	need := quorum
	if !m.Rules.CommitFirst {
		need = 1
	}
	instant := s.attempts[k].instant
	if committed >= need && (valid || !m.Rules.RunWhileValid) {
		t := s
		t.attempts[k].phase = ran
		t.runs[instant]++
		steps.Add(t, "%s RUNS T%d", m.names[k], instant)
	}
	if !valid || rejected >= quorum || underWay == 0 && committed < need {
		s.attempts[k].phase = over
		s.claims.Remove(k)
		steps.Add(s, "%s could not commit T%d", m.names[k], instant)
	}
}
