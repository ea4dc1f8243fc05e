package integration

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// A container takes the engine a second of a processor to make and to remove, more than most tests
// use: nodes of the plain kind that a test has left sound are emptied and used again.

// idle are nodes that wait for a test. They are still among those that closeAll removes.
var idle struct {
	mu    sync.Mutex
	nodes []*Node
}

// takeIdle gives out up to count nodes, each as new: with an address, and nothing that was done to
// it.
func takeIdle(ctx context.Context, count int) (nodes []*Node) {
	for len(nodes) < count {
		idle.mu.Lock()
		if len(idle.nodes) == 0 {
			idle.mu.Unlock()
			return nodes
		}
		n := idle.nodes[len(idle.nodes)-1]
		idle.nodes = idle.nodes[:len(idle.nodes)-1]
		idle.mu.Unlock()
		if again, err := n.reborn(ctx); err == nil {
			nodes = append(nodes, again)
		}
	}
	return nodes
}

// rest keeps a node for another test, or closes it.
func (n *Node) rest() error {
	if !n.isSound() {
		return n.close()
	}
	idle.mu.Lock()
	defer idle.mu.Unlock()
	idle.nodes = append(idle.nodes, n)
	return nil
}

// leavesNoTrace are faults that nothing is left of in a server that runs and is emptied.
var leavesNoTrace = []string{
	"kill", "stop", "start empty", "pause", "lose requests", "lose replies", "slow requests",
	"slow replies", "short replies", "FLUSHALL", "SCRIPT FLUSH", "SET", "DEL", "HSET", "CLIENT KILL",
}

// isSound reports whether the node is of the plain kind and runs, and nothing was done to it that
// would stay.
func (n *Node) isSound() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.settings.plain || n.closed || n.paused || n.mapped == "" {
		return false
	}
	return !slices.ContainsFunc(n.faults, func(what string) bool {
		return !slices.Contains(leavesNoTrace, what)
	})
}

// reborn makes another node of the container of this one, which is over. On an error it is closed.
func (n *Node) reborn(ctx context.Context) (*Node, error) {
	again := &Node{settings: n.settings, id: n.id, container: n.container}
	err := n.empty(ctx)
	if err == nil {
		again.Way, err = again.newWay()
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	if err := register(again); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.leave()
	again.mu.Lock()
	err = again.connect(ctx)
	again.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, again.close())
	}
	return again, nil
}

// empty takes from the server all that a test can have left.
func (n *Node) empty(ctx context.Context) error {
	for _, command := range [][]any{
		{"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}, {"CLIENT", "KILL", "TYPE", "pubsub"},
		{"FLUSHALL"}, {"SCRIPT", "FLUSH"}, {"ACL", "LOG", "RESET"}, {"CONFIG", "RESETSTAT"},
	} {
		if _, err := n.Do(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// leave ends the node, but not its container.
func (n *Node) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, w := range n.wires {
		w.close()
	}
	unregister(n)
}
