package tick

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/internal/model/bitset"
)

// State is one moment of a run. Attempts are numbered from 0; instants from 1, as they come.
type State struct {
	nodes    [nodes]node
	attempts [maxAttempts]attempt
	claims   bitset.Set // attempts whose claim is valid
	dead     bitset.Set // replicas that crashed
	now      uint8      // the newest instant that has come
	token    uint8      // the newest fencing token

	runs [maxInstants + 1]uint8 // how often each instant was run

	crashes, restarts, down, losses uint8 // what may still happen
}

// node is a node's memory, the commits on their way to it, and what each attempt knows from it.
type node struct {
	owner  mark // of the claim key; 0: the claim lock is free
	marks  [maxInstants + 1]mark
	waits  bool       // gives no vote, for its memory is new
	forgot bitset.Set // claims it may have granted before, while it waits
	blank  uint8      // instants up to this one may have had marks before its memory began
	isDown bool

	commits   bitset.Set // attempts with a commit under way
	committed bitset.Set // attempts that know of this node that it has taken their commit,
	rejected  bitset.Set // or has refused it, or did not answer in time
	answers   [maxAttempts]answer
}

// mark is an attempt's name on a node: its number and one.
type mark uint8

// answer is what an attempt knows from a node about its claim.
type answer struct {
	kind kind
	mark mark // of its instant, there
}

// hidden is the mark of an instant whose own a newer one has pushed out.
const hidden mark = maxAttempts + 1

type kind uint8

const (
	notAsked kind = iota
	asked         // the acquire is under way
	silent        // no answer will come
	refused
	granted
	blank // granted, by a node whose memory began after the instant
)

type phase uint8

const (
	idle phase = iota
	claiming
	committing
	ran
	over
)

type attempt struct {
	phase   phase
	instant uint8
	token   uint8 // the fencing token of its claim, once won: the ballot of its commits
}

// model is a check under way.
type model struct {
	Config
	attempts int
	replicas int
	alike    bool // all replicas have as many attempts: which is which does not matter
	names    [maxAttempts]string
}

func newModel(c Config) *model {
	m := &model{Config: c, attempts: len(c.Attempts)}
	var count [maxAttempts]int
	for k := range m.attempts {
		r := m.replica(k)
		count[r]++
		m.replicas = r + 1
		m.names[k] = c.Attempts[k:k+1] + strings.Repeat("'", count[r]-1)
	}
	m.alike = slices.Max(count[:m.replicas]) == slices.Min(count[:m.replicas])
	return m
}

// replica returns the replica whose attempt k is.
func (m *model) replica(k int) int { return int(m.Attempts[k] - 'A') }

// follows reports whether attempt k is not the first of its replica.
func (m *model) follows(k int) bool { return k > 0 && m.replica(k-1) == m.replica(k) }

// Initial returns the state in which nobody has claimed anything.
func (m *model) Initial() []State {
	s := State{
		now:      1,
		crashes:  m.Crashes,
		restarts: m.Restarts,
		down:     m.Down,
		losses:   m.Losses,
	}
	if m.Early {
		s.now = 0
	}
	return []State{s}
}

// Settle forgets the answers that nobody waits for any more.
func (m *model) Settle(s *State) {
	for k := range m.attempts {
		a := s.attempts[k]
		if a.phase == idle {
			continue
		}
		done := a.phase >= ran || s.dead.Has(m.replica(k))
		for i := range s.nodes {
			n := &s.nodes[i]
			switch {
			case done:
				n.answers[k] = answer{}
				n.committed.Remove(k)
				n.rejected.Remove(k)
			case a.phase != claiming && n.answers[k].kind != asked:
				n.answers[k] = answer{}
			case a.phase != claiming && !m.LateGrants:
				n.answers[k] = answer{}
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

func (n *node) less(o *node) bool {
	if c := cmp.Or(
		cmp.Compare(n.owner, o.owner),
		cmp.Compare(n.marks[1], o.marks[1]),
		cmp.Compare(n.marks[2], o.marks[2]),
		cmp.Compare(n.commits, o.commits),
		cmp.Compare(n.committed, o.committed),
		cmp.Compare(n.rejected, o.rejected),
		cmp.Compare(n.blank, o.blank),
		cmp.Compare(n.forgot, o.forgot),
		cmp.Compare(toInt(n.waits), toInt(o.waits)),
		cmp.Compare(toInt(n.isDown), toInt(o.isDown)),
	); c != 0 {
		return c < 0
	}
	for k := range n.answers {
		a, b := n.answers[k], o.answers[k]
		if a != b {
			return a.kind < b.kind || a.kind == b.kind && a.mark < b.mark
		}
	}
	return false
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// of returns attempt k's mark.
func of(k int) mark { return mark(k + 1) }

// count returns how many nodes satisfy is.
func (s *State) count(is func(*node) bool) int {
	c := 0
	for i := range s.nodes {
		if is(&s.nodes[i]) {
			c++
		}
	}
	return c
}
