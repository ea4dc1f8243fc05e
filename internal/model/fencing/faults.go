package fencing

import (
	"github.com/quorumlock/quorumlock/internal/model/bitset"
	"github.com/quorumlock/quorumlock/internal/model/search"
)

// restarts lets node i lose its key and its register. Messages to it, and its answers that were
// counted already, outlive that.
func (m *model) restarts(s State, i int, steps *search.Steps[State]) {
	if s.restarts == 0 {
		return
	}
	s.restarts--
	n := s.nodes[i]
	forgot := n.forgot | n.votes
	if n.owner != 0 {
		forgot |= bitset.Of(int(n.owner - 1))
	}
	s.nodes[i] = node{
		waits: true, since: s.now, forgot: forgot,
		acquire: n.acquire, raise: n.raise,
		votes: n.votes, agrees: n.agrees, raised: n.raised,
	}
	steps.Fault(s, "node %d RESTARTS empty (its register was %d)", i+1, n.register)
}

// votesAgain ends the wait of node i. MaxTTL after its memory began, each lock it may have
// forgotten is over, unless a majority of other nodes has renewed it.
func (m *model) votesAgain(s State, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	from := n.since + m.MaxTTL
	if !n.waits || s.now < from {
		return
	}
	for k := range m.Attempts {
		renewed := s.attempts[k].phase == holding && s.keys(k) >= quorum
		if n.forgot.Has(k) && s.valid.Has(k) && !renewed {
			return
		}
	}
	n.waits, n.since, n.forgot = false, 0, 0
	if m.Rules.Floor {
		n.floor = from
	}
	steps.Add(s, "node %d votes again", i+1)
}
