package exclusion

import (
	"cmp"

	"github.com/quorumlock/quorumlock/internal/model/bitset"
)

// State is one moment of a run.
type State struct {
	now      uint8
	nodes    [nodes]node
	attempts [maxAttempts]attempt

	// What may still happen.
	duplicates, restarts, snapshots uint8
}

// node is a node's memory, the messages on their way to it, and its answers that clients count.
// They lie together so that nodes can be swapped as a whole: which node is which does not matter.
type node struct {
	owner      token // whose key lies here; 0: the lock is free
	until      uint8 // the end of that key
	waitsUntil uint8 // the node gives no vote before; 0: it votes

	saved      bool // there is a snapshot, with this key:
	savedOwner token
	savedUntil uint8

	acquire, extend, plant, release bitset.Set // attempts with such a message under way

	voteFor     bitset.Set // attempts that have counted this node's vote
	extendedFor bitset.Set // and those that have counted it in the extend under way
}

// token is an owner token, as a number from 1.
type token uint8

type phase uint8

const (
	idle phase = iota
	asking
	holding
	over
)

type attempt struct {
	phase       phase
	startedAt   uint8 // of the round, while asking
	validUntil  uint8 // while holding
	extending   bool
	extendSince uint8 // first byte of the extend under way
	extends     uint8 // how many were begun
}

// model is a check under way.
type model struct {
	Config
	attempts int
	quorum   int
	names    [maxAttempts]string
}

func newModel(c Config) *model {
	if c.ExtendTTL == 0 {
		c.ExtendTTL = c.TTL
	}
	m := &model{Config: c, attempts: len(c.Attempts), quorum: nodes/2 + 1}
	if !c.Rules.Majority {
		m.quorum = nodes / 2
	}
	for k := range m.attempts {
		m.names[k] = c.Attempts[k : k+1]
		if k > 0 && c.Attempts[k] == c.Attempts[k-1] {
			m.names[k] = m.names[k-1] + "'"
		}
	}
	return m
}

// Initial returns the state in which nobody has asked yet, or those with a holder.
func (m *model) Initial() []State {
	s := State{duplicates: m.Duplicates, restarts: m.Restarts, snapshots: m.Snapshots}
	if !m.HoldsAtStart {
		return []State{s}
	}
	s.attempts[0] = attempt{phase: holding, validUntil: m.TTL}
	var initial []State
	for n := m.quorum; n <= nodes; n++ {
		t := s
		for i := range n {
			t.nodes[i].owner, t.nodes[i].until = m.token(0), m.TTL
		}
		initial = append(initial, t)
	}
	return initial
}

// Broken reports two valid holders.
func (m *model) Broken(s State) string {
	holders := 0
	for _, a := range s.attempts {
		if a.phase == holding && s.now < a.validUntil {
			holders++
		}
	}
	if holders > 1 {
		return "two valid holders"
	}
	return ""
}

// token returns the owner token of an attempt.
func (m *model) token(k int) token {
	if !m.Rules.FreshToken {
		return token(m.Attempts[k]-'A') + 1
	}
	return token(k) + 1
}

// Settle ends rounds, validities and keys whose time is over, and forgets answers that nobody
// counts any more.
func (m *model) Settle(s *State) {
	for k := range m.attempts {
		a := &s.attempts[k]
		if a.phase == holding && s.now >= a.validUntil {
			a.phase = over
		}
		if a.phase == asking && s.now >= a.startedAt+m.RoundBound {
			*s = s.ended(k)
		}
		if a.phase == over {
			*a = attempt{phase: over}
		}
	}
	for i := range s.nodes {
		s.nodes[i].expire(s.now)
		for k := range m.attempts {
			if s.attempts[k].phase != asking {
				s.nodes[i].voteFor.Remove(k)
			}
			if !s.attempts[k].extending {
				s.nodes[i].extendedFor.Remove(k)
			}
		}
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

// ended returns s with attempt k over and its releases sent.
func (s State) ended(k int) State {
	s.attempts[k] = attempt{phase: over}
	for i := range s.nodes {
		s.nodes[i].release.Add(k)
	}
	return s
}

func (n *node) expire(now uint8) {
	if now >= n.until {
		n.owner, n.until = 0, 0
	}
	if now >= n.savedUntil {
		n.savedOwner, n.savedUntil = 0, 0
	}
	if now >= n.waitsUntil {
		n.waitsUntil = 0
	}
}

func (n *node) less(o *node) bool {
	return cmp.Or(
		cmp.Compare(n.owner, o.owner),
		cmp.Compare(n.until, o.until),
		cmp.Compare(n.waitsUntil, o.waitsUntil),
		cmp.Compare(n.savedOwner, o.savedOwner),
		cmp.Compare(n.savedUntil, o.savedUntil),
		compareBool(n.saved, o.saved),
		cmp.Compare(n.acquire, o.acquire),
		cmp.Compare(n.extend, o.extend),
		cmp.Compare(n.plant, o.plant),
		cmp.Compare(n.release, o.release),
		cmp.Compare(n.voteFor, o.voteFor),
		cmp.Compare(n.extendedFor, o.extendedFor),
	) < 0
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
