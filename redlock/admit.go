package redlock

import (
	"context"
	"errors"
	"slices"

	"github.com/quorumlock/quorumlock/quorum"
)

// Admit is an operator's word that nodes are new, or otherwise sure to hold no forgotten lock:
// they vote at once instead of after MaxTTL. Nodes are named as in Config.Addrs (without password,
// as errors show them); none named means all. Said of a node that has forgotten a lock which
// somebody still holds, it makes two holders possible, so it has no place in start-up code. Fencing
// tokens go on growing: the node's registers start above all that it can have forgotten.
//
// It blocks until the nodes have answered, at most NodeTimeout, and at most until ctx ends. The
// error joins a NodeError for each node that was not admitted; the others are.
func (c *Client) Admit(ctx context.Context, nodes ...string) error {
	if !c.made() {
		return during("admit", "", errNotMade)
	}
	if ctx == nil {
		return during("admit", "", invalid("the context is nil"))
	}
	if err := ctx.Err(); err != nil {
		return &RoundError{Op: "admit", kinds: []error{err}}
	}
	if c.isClosed() {
		return &RoundError{Op: "admit", kinds: []error{ErrClosed}}
	}
	var which quorum.Set
	var faults []error
	for i := range c.engine.Nodes() {
		if len(nodes) == 0 || slices.Contains(nodes, c.engine.NodeName(i)) {
			which |= 1 << i
		}
	}
	for _, name := range nodes {
		if !slices.Contains(c.nodeNames(), name) {
			faults = append(faults, during("admit", "",
				invalid("%q is not one of the nodes %q", name, c.nodeNames())))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for _, err := range c.engine.Admit(ctx, which) {
		node := &NodeError{Node: c.engine.NodeName(err.Node), Op: "admit", Err: explain(err.Err)}
		faults = append(faults, node)
	}
	return errors.Join(faults...)
}

func (c *Client) nodeNames() (names []string) {
	for i := range c.engine.Nodes() {
		names = append(names, c.engine.NodeName(i))
	}
	return names
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
