package vote

import (
	"cmp"

	"github.com/quorumlock/quorumlock/internal/model/bitset"
)

// State is one moment of a run. Attempts are numbered by their tokens, the smallest first; with
// fresh tokens, the second attempts of all contenders come after the first ones.
type State struct {
	nodes    [maxNodes]node
	attempts [maxAttempts]attempt

	losses, crashes uint8 // what may still happen
}

// node is a node's memory, the messages on their way to it, and what each attempt knows from it.
type node struct {
	holder  holder
	answers [maxAttempts]answer
	late    bitset.Set // attempts with an acquire under way that they have given up on
	release bitset.Set
	dead    bool
	cutOff  bitset.Set // attempts that cannot reach it
}

// holder is the attempt whose key lies on a node: its number and one; 0: none.
type holder uint8

// answer is what an attempt knows from a node: one of those below, or, from heldBy on, who holds
// the lock there.
type answer uint8

const (
	notAsked answer = iota
	asked           // the acquire is under way
	silent          // no answer came in time
	heldBy          // + the holder, which may be the attempt itself
)

type phase uint8

const (
	idle phase = iota
	asking
	won
	yielded
	crashed
	gaveUp // the lock is held by a majority, or there is no quorum
)

type attempt struct {
	phase     phase
	askedOnce bool // the silent nodes were asked once more
	stays     bool // it has once stayed; kept only without Reevaluate
	anew      bool // its token was used before; only without FreshToken
}

// model is a check under way.
type model struct {
	Config
	attempts int
	majority int
	names    [maxAttempts]string
}

func newModel(c Config) *model {
	m := &model{Config: c, attempts: c.Contenders, majority: c.Nodes/2 + 1}
	if c.AskAnew && c.Rules.FreshToken {
		m.attempts *= 2
	}
	if !c.Rules.Majority {
		m.majority = c.Nodes / 2
	}
	for k := range m.attempts {
		m.names[k] = string(rune('A' + k%c.Contenders))
		if k >= c.Contenders {
			m.names[k] += "'"
		}
	}
	return m
}

// Initial returns the state in which nobody has asked yet.
func (m *model) Initial() []State {
	s := State{losses: m.Losses, crashes: m.Crashes}
	for i := range m.Nodes {
		n := &s.nodes[i]
		n.dead = i < m.DeadNodes
		if m.Alone && i > 0 {
			n.cutOff.Add(0)
			if m.attempts > m.Contenders {
				n.cutOff.Add(m.Contenders) // its second attempt
			}
		}
	}
	return []State{s}
}

// Settle forgets the answers to attempts that ask no more.
func (m *model) Settle(s *State) {
	for k := range m.attempts {
		a := &s.attempts[k]
		if a.phase == asking {
			continue
		}
		a.askedOnce, a.stays = false, false
		for i := range m.Nodes {
			s.nodes[i].answers[k] = notAsked
		}
	}
}

// Sort puts the nodes into an order of their contents.
func (m *model) Sort(s *State) {
	for i := range m.Nodes {
		for j := i + 1; j < m.Nodes; j++ {
			if s.nodes[j].less(&s.nodes[i]) {
				s.nodes[i], s.nodes[j] = s.nodes[j], s.nodes[i]
			}
		}
	}
}

func (n *node) less(o *node) bool {
	if c := cmp.Compare(n.holder, o.holder); c != 0 {
		return c < 0
	}
	for k, a := range n.answers {
		if b := o.answers[k]; a != b {
			return a < b
		}
	}
	return cmp.Or(
		cmp.Compare(n.late, o.late),
		cmp.Compare(n.release, o.release),
		cmp.Compare(n.cutOff, o.cutOff),
		cmp.Compare(toInt(n.dead), toInt(o.dead)),
	) < 0
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// of returns attempt k as a holder.
func of(k int) holder { return holder(k + 1) }

// holder returns who holds the lock according to the answer; 0 if it does not say.
func (a answer) holder() holder {
	if a < heldBy {
		return 0
	}
	return holder(a - heldBy)
}
