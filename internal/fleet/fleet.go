// Package fleet starts the nodes that tools measure on: real redis-server processes where there is
// a redis-server, else nodes inside the tool's own process. What is measured on the latter says
// something about the protocol and little about time.
package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// A Fleet is some independent nodes that run.
type Fleet struct {
	addrs []string
	kind  string
	real  bool
	close func() error
}

// Start starts count nodes, real ones if possible. ctx bounds the start only; the nodes run until
// Close.
func Start(ctx context.Context, count int) (*Fleet, error) {
	processes, err := redisproc.Start(ctx, count)
	if err == nil {
		return &Fleet{addrs: processes.Addrs(), kind: "redis-server processes", real: true,
			close: processes.Close}, nil
	}
	if !errors.Is(err, redisproc.ErrNoServer) && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	return StartInside(count)
}

// StartInside starts count nodes in this process, whether or not there is a redis-server.
func StartInside(count int) (*Fleet, error) {
	inside, err := embedded.Start(count)
	if err != nil {
		return nil, err
	}
	return &Fleet{addrs: inside.Addrs(), kind: "nodes inside this process", close: inside.Close}, nil
}

// Addrs returns the nodes' addresses in their order.
func (f *Fleet) Addrs() []string { return f.addrs }

// Real reports whether the nodes are redis-server processes.
func (f *Fleet) Real() bool { return f.real }

// String says how many nodes of what kind there are.
func (f *Fleet) String() string { return fmt.Sprintf("%d %s", len(f.addrs), f.kind) }

// Close ends the nodes.
func (f *Fleet) Close() error { return f.close() }
