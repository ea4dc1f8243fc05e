package tick

import (
	"fmt"
	"strings"

	"github.com/quorumlock/quorumlock/internal/model/search"
)

// Broken reports an instant that was run twice.
func (m *model) Broken(s State) string {
	for instant, n := range s.runs {
		if n > 1 {
			return fmt.Sprintf("T%d runs twice", instant)
		}
	}
	return ""
}

// hasRun is the goal: the first instant was run.
func (m *model) hasRun(s State) bool { return s.runs[1] > 0 }

// wedged reports whether it is wrong that the first instant cannot be run any more: a replica is
// left that could claim it, enough nodes can be read, and nobody can have run it. Silence is right
// where a claimer may have had a majority before it died, for at most once comes first.
func (m *model) wedged(st search.Stuck[State]) bool {
	s := st.State
	if !m.canClaim(s) {
		return false
	}
	var marks [maxAttempts + 1]int
	unread := 0 // nodes that cannot be read
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.isDown || n.waits || n.blank >= 1 && m.Rules.Memory != Believed {
			unread++
			continue
		}
		if by := n.marks[1]; by != 0 && !m.knowsNotRun(s, by) {
			marks[by]++
		}
	}
	if nodes-unread < quorum {
		return false
	}
	for _, n := range marks {
		if n+unread >= quorum {
			return false
		}
	}
	return true
}

// canClaim reports whether a live replica has an attempt left, and none is under way.
func (m *model) canClaim(s State) bool {
	left := false
	for k := range m.attempts {
		if s.dead.Has(m.replica(k)) {
			continue
		}
		switch s.attempts[k].phase {
		case idle:
			left = true
		case claiming, committing:
			return false
		}
	}
	return left
}

// knowsNotRun reports whether a live replica with an attempt left knows that the attempt behind a
// mark, its own, did not run.
func (m *model) knowsNotRun(s State, by mark) bool {
	j := int(by) - 1
	last := strings.LastIndexByte(m.Attempts, m.Attempts[j])
	return s.attempts[j].phase == over && !s.dead.Has(m.replica(j)) && s.attempts[last].phase == idle
}
