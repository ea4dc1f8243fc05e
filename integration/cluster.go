package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds the start of a node, image apart.
const startTimeout = time.Minute

// A Cluster is some nodes that know nothing of each other.
type Cluster struct {
	Nodes []*Node
}

// Start starts count nodes side by side and waits until each of them answers through its mapped
// address, and is the one that was started. ctx bounds the start only; the nodes run until Close.
// On an error nothing is left. Without a container engine the error is ErrNoEngine.
func Start(ctx context.Context, count int, opts ...Option) (*Cluster, error) {
	s := collect(opts)
	image, err := findImage(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	nodes, errs := make([]*Node, count), make([]error, count)
	var starting sync.WaitGroup
	for i := range nodes {
		starting.Go(func() { nodes[i], errs[i] = startNode(ctx, image, s) })
	}
	starting.Wait()
	c := &Cluster{Nodes: nodes}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// ForTest is Start for a test: the nodes end with it, and their logs are shown if it failed. Nodes
// without options may be used again by later tests, emptied; closeAll removes them at the end.
// Without a container engine the test is skipped; with CI=true it fails, since there nobody would
// notice.
func ForTest(tb testing.TB, count int, opts ...Option) *Cluster {
	tb.Helper()
	c := &Cluster{}
	if len(opts) == 0 {
		c.Nodes = takeIdle(tb.Context(), count)
	}
	endWithTest(tb, c)
	if missing := count - len(c.Nodes); missing > 0 {
		more, err := Start(tb.Context(), missing, opts...)
		need(tb, err)
		c.Nodes = append(c.Nodes, more.Nodes...)
	}
	if len(c.Nodes) != count {
		tb.Fatalf("%d nodes, want %d", len(c.Nodes), count)
	}
	return c
}

// need ends a test that has no nodes.
func need(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrNoEngine) && os.Getenv("CI") != "true":
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
}

// endWithTest lets the nodes end with the test, and shows their logs if it failed.
func endWithTest(tb testing.TB, c *Cluster) {
	tb.Cleanup(func() {
		end := (*Node).rest
		if tb.Failed() {
			end = (*Node).close
			for i, n := range c.Nodes {
				tb.Logf("log of node %d, %s, ends:\n%s", i, n.Addr(), n.Log())
			}
		}
		if err := onAll(c.Nodes, end); err != nil {
			tb.Error(err)
		}
	})
}

// Addrs are the nodes' addresses, host:port, in their order. They stay the same over restarts.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// URLs are the addresses with scheme and user: "redis://user:password@host:port".
func (c *Cluster) URLs(scheme, userinfo string) []string {
	urls := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		urls[i] = fmt.Sprintf("%s://%s@%s", scheme, userinfo, n.Addr())
	}
	return urls
}

// Close removes the containers, whatever state they are in. It may be called twice.
func (c *Cluster) Close() error { return onAll(c.Nodes, (*Node).close) }

// onAll does it to all nodes side by side.
func onAll(nodes []*Node, do func(*Node) error) error {
	errs := make([]error, len(nodes))
	var doing sync.WaitGroup
	for i, n := range nodes {
		if n != nil {
			doing.Go(func() { errs[i] = do(n) })
		}
	}
	doing.Wait()
	return errors.Join(errs...)
}

// running are the nodes that were not closed yet.
var running struct {
	mu    sync.Mutex
	nodes map[*Node]bool
	ended bool // no more are started
}

// register adds a node before its container is made, so that none is missed.
func register(n *Node) error {
	running.mu.Lock()
	defer running.mu.Unlock()
	if running.ended {
		return errors.New("integration: interrupted")
	}
	if running.nodes == nil {
		running.nodes = map[*Node]bool{}
	}
	running.nodes[n] = true
	return nil
}

func unregister(n *Node) {
	running.mu.Lock()
	defer running.mu.Unlock()
	delete(running.nodes, n)
}

// closeAll removes all containers of this process, and lets no more be made. It is for programs
// that are told to end: no clean-up of tests runs then.
func closeAll() error {
	running.mu.Lock()
	running.ended = true
	var c Cluster
	for n := range running.nodes {
		c.Nodes = append(c.Nodes, n)
	}
	running.mu.Unlock()
	return c.Close()
}
