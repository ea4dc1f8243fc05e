package redlocktest

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// TB is the part of testing.TB that is used here.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// A Quorum is a set of nodes in memory, and the clients over them. Its methods may be called
// concurrently.
type Quorum struct {
	t     TB // may be nil
	nodes []*Node

	mu      sync.Mutex // guards below
	clients map[*redlock.Client]*process
	faults  []error // of use
}

// A process is what a client runs on: its clock and its ways to the nodes.
type process struct {
	machine machine
	links   []*fakenode.Link
}

// part changes the process's own way to n, if n is one of the quorum's nodes.
func (p *process) part(n *Node, parted bool) {
	for _, link := range p.links {
		if link.Node() == n.fake {
			link.Faults().Partition(parted)
		}
	}
}

// Start starts n nodes, empty and sound. When t ends the Quorum is closed. In an example or a
// program there is no t: give nil and call Close.
func Start(t TB, n int) *Quorum {
	q := &Quorum{t: t, clients: make(map[*redlock.Client]*process)}
	for i := range n {
		name := fmt.Sprintf("node-%d:6379", i)
		q.nodes = append(q.nodes, &Node{quorum: q, fake: fakenode.New(name), fresh: true})
	}
	if t != nil {
		t.Helper()
		// What was misused was told at once, and a client that could not free its locks is no
		// fault of a test that cut it off.
		t.Cleanup(func() { _ = q.Close() })
	}
	return q
}

// Client makes a client over the nodes. Each is a process of its own: two clients are rivals. The
// nodes stand in for cfg.Addrs and cfg.Clients, which are ignored; the rest of cfg is checked as
// by redlock.New. Without a cfg.Logger nothing is logged.
func (q *Quorum) Client(cfg redlock.Config) (*redlock.Client, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &process{}
	var nodes []quorum.Node
	for _, n := range q.nodes {
		link := n.fake.Link()
		p.links = append(p.links, link)
		nodes = append(nodes, link)
		n.admit(cfg.Prefix)
	}
	made, err := door.NewClient(cfg, nodes, &p.machine)
	if err != nil {
		return nil, fmt.Errorf("redlocktest: %w", err)
	}
	c := made.(*redlock.Client)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.clients == nil {
		q.clients = make(map[*redlock.Client]*process)
	}
	q.clients[c] = p
	return c, nil
}

// Nodes are all nodes, for loops: for _, n := range q.Nodes()[:3] { n.Stop() }.
func (q *Quorum) Nodes() []*Node { return append([]*Node(nil), q.nodes...) }

// Node is the i-th node, counted from 0.
func (q *Quorum) Node(i int) *Node {
	if i >= 0 && i < len(q.nodes) {
		return q.nodes[i]
	}
	if q.t != nil {
		q.t.Helper()
	}
	q.misused("there is no node %d, only %d nodes, counted from 0", i, len(q.nodes))
	return &Node{quorum: q, fake: fakenode.New("no such node:0")}
}

// Close closes all clients. Calling it again is fine. The error says what was misused; a client
// whose nodes are stopped or cut off can add that its locks were left to end by their TTL.
func (q *Quorum) Close() error {
	q.mu.Lock()
	var clients []*redlock.Client
	for c := range q.clients {
		clients = append(clients, c)
	}
	errs := q.faults
	q.mu.Unlock()

	closed := make([]error, len(clients))
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() { closed[i] = c.Close() })
	}
	all.Wait()
	return errors.Join(append(closed, errs...)...)
}

// process is what c runs on, nil if c is not of this quorum.
func (q *Quorum) process(c *redlock.Client) *process {
	q.mu.Lock()
	p := q.clients[c]
	q.mu.Unlock()
	if p == nil {
		if q.t != nil {
			q.t.Helper()
		}
		q.misused("a client that is not of this quorum was named")
	}
	return p
}

func (q *Quorum) misused(format string, args ...any) {
	err := fmt.Errorf("redlocktest: "+format, args...)
	q.mu.Lock()
	q.faults = append(q.faults, err)
	q.mu.Unlock()
	if q.t != nil {
		q.t.Helper()
		q.t.Errorf("%v", err)
	}
}

func (q *Quorum) processes() []*process {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*process, 0, len(q.clients))
	for _, p := range q.clients {
		all = append(all, p)
	}
	return all
}
