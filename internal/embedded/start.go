package embedded

import (
	"errors"
	"fmt"
	"testing"
)

// Nodes are the nodes of one Start.
type Nodes []*Node

// Start starts count empty nodes. They run until Close.
func Start(count int) (Nodes, error) {
	if count < 1 {
		return nil, fmt.Errorf("embedded: start %d nodes: at least one is needed", count)
	}
	var nodes Nodes
	for range count {
		n, err := startOne()
		if err != nil {
			return nil, errors.Join(err, nodes.Close())
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// ForTest is Start for a test or benchmark: the nodes end with it, and a failure fails it.
func ForTest(tb testing.TB, count int) Nodes {
	tb.Helper()
	nodes, err := Start(count)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := nodes.Close(); err != nil {
			tb.Error(err)
		}
	})
	return nodes
}

// Addrs returns the nodes' addresses in their order.
func (nn Nodes) Addrs() []string {
	addrs := make([]string, len(nn))
	for i, n := range nn {
		addrs[i] = n.Addr()
	}
	return addrs
}

// Close ends all nodes and waits until their goroutines have ended. It may be called more than
// once.
func (nn Nodes) Close() error {
	var errs []error
	for _, n := range nn {
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}
