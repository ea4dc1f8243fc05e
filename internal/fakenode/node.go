package fakenode

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A Node is one Redis node in memory. It may be used as a quorum.Node itself, or through Links. Its
// methods may be called concurrently.
type Node struct {
	name   string
	faults *Faults
	self   *Link

	mu        sync.Mutex // guards all below
	entries   map[string]*entry
	clock     wallClock
	inbox     []*message // arrived, not executed
	working   bool       // somebody executes the inbox
	paused    bool
	busyUntil time.Time // with what was executed, see Faults.Effort
	lives     int       // restarts, so that a message notices one under its feet
	identity  identity
	nature    Nature
	refusals  refusals
	full      bool
	silence   silence
	guardFor  time.Duration
	listeners map[*listener]struct{}
	hooks     hooks
	counts    map[string]int
}

var _ quorum.Node = (*Node)(nil)

// New makes an empty node that answers at once. Its name is also what its identities are made of,
// so nodes of one test need different names.
func New(name string) *Node {
	n := &Node{
		name:      name,
		entries:   make(map[string]*entry),
		listeners: make(map[*listener]struct{}),
		counts:    make(map[string]int),
	}
	n.faults = newFaults(n.wayChanged(nil))
	n.identity.renew(name)
	n.self = n.Link()
	return n
}

// Link makes another way to the node, for a client of its own: with faults of its own, and a
// Close that leaves the node and the other links alone.
func (n *Node) Link() *Link {
	l := &Link{node: n, closed: make(chan struct{})}
	l.faults = newFaults(n.wayChanged(l))
	return l
}

// Faults of all ways to the node.
func (n *Node) Faults() *Faults { return n.faults }

// Name is what New was told.
func (n *Node) Name() string { return n.name }

// Exec runs the batch as Link.Exec does.
func (n *Node) Exec(ctx context.Context, batch *quorum.Batch) error {
	return n.self.Exec(ctx, batch)
}

// Listen opens a subscription as Link.Listen does.
func (n *Node) Listen(heard func(quorum.Heard)) quorum.Listener { return n.self.Listen(heard) }

// Close ends the node's use as a quorum.Node. Its memory can still be looked at, and its Links
// work on.
func (n *Node) Close() error { return n.self.Close() }

func (n *Node) String() string { return "fake node " + n.name }
