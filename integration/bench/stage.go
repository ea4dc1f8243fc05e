package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// A stage is the redis-server processes that a run needs, on loopback, on ports that were free.
type stage struct {
	healthy redisproc.Nodes             // who needs fewer takes the first
	broken  map[trouble]redisproc.Nodes // five each, the last of them dead or frozen
}

// startStage starts the nodes, has them vote at once, and brings the trouble about. ctx bounds the
// start; close ends what was started.
func startStage(ctx context.Context, f *form) (s *stage, err error) {
	s = &stage{broken: map[trouble]redisproc.Nodes{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.healthy, err = startNodes(ctx, f.nodes()); err != nil {
		return s, err
	}
	for _, t := range f.troubles() {
		if t.isSlow() {
			continue
		}
		nodes, err := startNodes(ctx, usualNodes)
		s.broken[t] = nodes
		if err != nil {
			return s, err
		}
		for _, n := range nodes[len(nodes)-t.nodes():] {
			if err := t.befall(n); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func startNodes(ctx context.Context, count int) (redisproc.Nodes, error) {
	nodes, err := redisproc.Start(ctx, count)
	if err != nil {
		return nil, err
	}
	return nodes, admit(ctx, nodes.Addrs())
}

// befall brings the trouble upon a node.
func (t trouble) befall(n *redisproc.Node) error {
	switch t {
	case oneDead, twoDead:
		return n.Kill()
	case oneFrozen, twoFrozen:
		return n.Freeze()
	}
	return fmt.Errorf("no such trouble: %q", t)
}

// in are the nodes with a trouble, the last ones, and among them those that can be asked.
func (s *stage) in(t trouble) (nodes, answering redisproc.Nodes) {
	if t.isSlow() {
		nodes = s.healthy[:usualNodes]
		return nodes, nodes
	}
	nodes = s.broken[t]
	return nodes, nodes[:len(nodes)-t.nodes()]
}

func (s *stage) close() error {
	errs := []error{s.healthy.Close()}
	for _, nodes := range s.broken {
		errs = append(errs, nodes.Close())
	}
	return errors.Join(errs...)
}

// roundTrip is the median of some PINGs, one after the other on one connection to one node: what a
// message and its answer take when nothing else is under way. dial nil: without delay.
func roundTrip(ctx context.Context, addr string, pings int, dial dialer) (time.Duration, error) {
	c := redis.NewClient(&redis.Options{Addr: addr, Dialer: dial})
	defer c.Close()
	took := make([]time.Duration, 0, pings)
	for range pings {
		began := time.Now()
		if err := c.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}

// pause waits, less if ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
