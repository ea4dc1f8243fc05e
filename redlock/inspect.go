package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A Status is what the nodes know of a name.
type Status struct {
	Name      string
	Holder    string        // identity of whoever has the key on a majority; "": nobody has
	Token     uint64        // the largest fencing register; with a holder, mostly its token
	Remaining time.Duration // until a majority of the nodes is free, if it is not renewed

	// Votes is on how many nodes the one that is on the most has its key, Quorum how many make it
	// the holder, of Nodes. Votes above 0 and below Quorum, or differing holders in PerNode, are
	// leftovers or contention.
	Votes, Quorum, Nodes int

	PerNode []NodeLock
	Waiters int // calls of Lock in this process that wait for the name
}

// A NodeLock is what one node knows of a name.
type NodeLock struct {
	Node, Holder string        // Holder: identity; "": nobody's key
	Remaining    time.Duration // negative: a key without an end, which no lock of ours has
	Token        uint64        // the node's fencing register; 0: none
	Err          error         // a *NodeError: the node did not say
}

// Inspect asks every node who holds a name. It takes nothing and changes nothing. It blocks until
// all nodes have answered, at most NodeTimeout, or until ctx ends. The Status is filled in as far
// as nodes answered; the error matches ErrNoQuorum when that is less than a majority.
func (c *Client) Inspect(ctx context.Context, name string) (Status, error) {
	if err := c.begin(ctx, "inspect", name); err != nil {
		return Status{}, err
	}
	defer c.calls.Done()
	s := Status{Name: name, Quorum: c.engine.Quorum(), Nodes: c.engine.Nodes(),
		Waiters: c.lines.length(name)}
	seen, err := c.engine.Inspect(ctx, name)
	if errors.Is(err, quorum.ErrStopped) {
		return s, &RoundError{Op: "inspect", Name: name, kinds: []error{ErrClosed}}
	}
	if err != nil {
		e := c.roundError("inspect", name, nil)
		e.kinds = []error{ErrNoQuorum, err}
		return s, e
	}
	var failed []quorum.NodeErr
	for i, n := range seen {
		node := NodeLock{Node: c.engine.NodeName(i), Holder: quorum.Identity(n.Holder),
			Remaining: n.Left, Token: n.Register}
		if n.Err != nil {
			node.Err = &NodeError{Node: node.Node, Op: "inspect", Err: explain(n.Err)}
			failed = append(failed, quorum.NodeErr{Node: i, Err: n.Err})
		}
		s.PerNode = append(s.PerNode, node)
		s.Token = max(s.Token, n.Register)
	}
	holder, votes, left := quorum.Strongest(seen)
	s.Votes = votes
	if votes >= s.Quorum {
		s.Holder, s.Remaining = quorum.Identity(holder), left
	}
	if s.Nodes-len(failed) < s.Quorum {
		e := c.roundError("inspect", name, failed)
		e.Votes, e.kinds = s.Nodes-len(failed), []error{ErrNoQuorum}
		return s, e
	}
	return s, nil
}

// A NodeStatus is how one node is.
type NodeStatus struct {
	Node, Version string // address as configured, without password; redis_version
	Reachable     bool
	Latency       time.Duration // of one round trip
	ClockOffset   time.Duration // its wall clock minus this machine's
	VotesFrom     time.Time     // by its own clock; zero: always
	MaxTTL        time.Duration // the largest of all its users, as it has it; 0: of none
	GuardOff      bool          // the restart guard is off, or the node has no INFO to support it
	Warnings      []string      // what an operator should know
	Err           error         // a *NodeError: it does not answer, or why it gives no vote, or ErrClosed
}

// Nodes asks every node how it is. It blocks until all have answered, at most NodeTimeout, or
// until ctx ends. A node that was never spoken to begins to wait for its vote by this.
func (c *Client) Nodes(ctx context.Context) []NodeStatus {
	if !c.made() {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	var all []NodeStatus
	if c.isClosed() { // nobody is asked any more
		for i := range c.engine.Nodes() {
			name := c.engine.NodeName(i)
			all = append(all, NodeStatus{Node: name,
				Err: &NodeError{Node: name, Op: "vote", Err: ErrClosed}})
		}
		return all
	}
	reports := c.engine.Survey(ctx)
	for i, r := range reports {
		s := NodeStatus{Node: c.engine.NodeName(i), Version: r.Version, Reachable: r.Reachable,
			Latency: r.Latency, ClockOffset: r.Offset, VotesFrom: r.VotesFrom,
			MaxTTL: r.MaxTTL, GuardOff: r.GuardOff, Warnings: r.Warnings}
		if r.Err != nil {
			s.Err = &NodeError{Node: s.Node, Op: "vote", Err: explain(r.Err)}
		}
		all = append(all, s)
	}
	return all
}

// ClockOffset is how far this machine's wall clock is behind those of the nodes, at the median:
// add it to time.Now to get the quorum's time. It is 0 until a majority has answered once.
func (c *Client) ClockOffset() time.Duration {
	if !c.made() {
		return 0
	}
	offset, _ := c.engine.Offset()
	return offset
}
