package vote

import "github.com/quorumlock/quorumlock/internal/model/search"

// Broken reports two winners.
func (m *model) Broken(s State) string {
	if m.winners(s) > 1 {
		return "two winners"
	}
	return ""
}

// hasWinner is the goal.
func (m *model) hasWinner(s State) bool { return m.winners(s) > 0 }

func (m *model) winners(s State) int {
	n := 0
	for k := range m.attempts {
		if s.attempts[k].phase == won {
			n++
		}
	}
	return n
}

// somebodyLives: without a winner is right only where everybody died. A new attempt of one that
// died does not start, and does not count.
func (m *model) somebodyLives(st search.Stuck[State]) bool {
	for k := range m.Contenders {
		if st.State.attempts[k].phase != crashed {
			return true
		}
	}
	return false
}
