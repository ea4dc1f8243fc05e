package fencing

import (
	"cmp"

	"github.com/quorumlock/quorumlock/internal/model/bitset"
)

// State is one moment of a run.
type State struct {
	now      uint8 // the true time
	nodes    [nodes]node
	attempts [maxAttempts]attempt
	valid    bitset.Set // attempts whose validity has not ended
	highest  uint8      // the highest token given out so far
	fault    fault

	duplicates, restarts, lapses uint8 // what may still happen
}

// node is a node's memory, the messages on their way to it, and its answers that clients count.
type node struct {
	owner    uint8 // number of the attempt whose key lies here, from 1; 0: the lock is free
	register uint8

	waits  bool       // gives no vote, for its memory is new
	since  uint8      // when its memory began, while it waits
	floor  uint8      // new grants leave the register at least here
	forgot bitset.Set // attempts it may have granted before its memory began, while it waits

	acquire, raise bitset.Set // attempts with such a message under way
	votes          bitset.Set // attempts that have this node's vote
	agrees         bitset.Set // those it answered the largest number they have seen
	raised         bitset.Set // those it has raised the register for
}

type phase uint8

const (
	idle phase = iota
	asking
	raising
	holding
	over
)

type attempt struct {
	phase     phase
	startedAt uint8 // until it holds
	proposal  uint8
	number    uint8 // asking: the largest answer; raising: what it raises to; holding: the token
}

// fault is what went wrong in the step that led to a state.
type fault uint8

const (
	noFault fault = iota
	tokenDoesNotGrow
	twoHolders
)

type model struct{ Config }

// Initial returns the state in which nobody has asked yet.
func (m *model) Initial() []State {
	return []State{{
		now:        m.FirstTime,
		duplicates: m.Duplicates,
		restarts:   m.Restarts,
		lapses:     m.Lapses,
	}}
}

// Broken reports a token that is not above all before it, and two valid holders.
func (m *model) Broken(s State) string {
	switch s.fault {
	case tokenDoesNotGrow:
		return "a token does not grow"
	case twoHolders:
		return "two valid holders"
	}
	return ""
}

// Settle ends rounds that took MaxTTL, and forgets what no longer matters.
func (m *model) Settle(s *State) {
	for k := range m.Attempts {
		a := &s.attempts[k]
		pending := a.phase == asking || a.phase == raising
		if pending && s.now >= a.startedAt+m.MaxTTL {
			s.valid.Remove(k)
		}
		if a.phase != idle && !s.valid.Has(k) {
			*a = attempt{phase: over, proposal: a.proposal}
		}
		if a.phase == holding {
			a.startedAt = 0
			if !m.Plants {
				a.number = 0 // nobody is told the token any more
			}
		}
		s.forgetAnswers(k)
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.register >= n.floor {
			n.floor = 0
		}
	}
}

// forgetAnswers drops the answers that attempt k does not wait for any more, its raises that
// would find it over, and its proposal if no acquire can carry it to a node any more.
func (s *State) forgetAnswers(k int) {
	a := &s.attempts[k]
	underWay := false
	for i := range s.nodes {
		n := &s.nodes[i]
		if a.phase != asking {
			n.votes.Remove(k)
			n.agrees.Remove(k)
		}
		if a.phase != raising {
			n.raised.Remove(k)
		}
		if a.phase == over {
			// It could still raise a register higher: not a danger to any token.
			n.raise.Remove(k)
		}
		underWay = underWay || n.acquire.Has(k)
	}
	if !underWay {
		a.proposal = 0
	}
}

// Sort puts the nodes into an order of their contents.
func (m *model) Sort(s *State) {
	for i := range s.nodes {
		for j := i + 1; j < nodes; j++ {
			if s.nodes[j].less(&s.nodes[i]) {
				s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i]
			}
		}
	}
}

func (n *node) less(o *node) bool {
	return cmp.Or(
		cmp.Compare(n.owner, o.owner),
		cmp.Compare(n.register, o.register),
		cmp.Compare(n.acquire, o.acquire),
		cmp.Compare(n.raise, o.raise),
		cmp.Compare(n.votes, o.votes),
		cmp.Compare(n.agrees, o.agrees),
		cmp.Compare(n.raised, o.raised),
		cmp.Compare(n.floor, o.floor),
		cmp.Compare(n.since, o.since), // 0 unless it waits
		cmp.Compare(n.forgot, o.forgot),
	) < 0
}

// keys returns on how many nodes attempt k's key lies.
func (s *State) keys(k int) int {
	n := 0
	for i := range s.nodes {
		if s.nodes[i].owner == owner(k) {
			n++
		}
	}
	return n
}

// owner is the mark of attempt k on a node.
func owner(k int) uint8 { return uint8(k + 1) }

// name is the letter of an attempt's client.
func name(k int) rune { return 'A' + rune(k) }
