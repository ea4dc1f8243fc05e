package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// nodes of a cluster, and how many of them an episode may restart.
const nodes = 5

var restarted = []int{1, 2, 3, 5}

// A cluster is five nodes and the clients that compete on them. Nothing is shared between two.
type cluster struct {
	settings settings
	servers  redisproc.Nodes
	clients  []*redlock.Client
	random   *rand.Rand // of the episodes alone: used by one goroutine
	ledger   *ledger
	episodes [nodes + 1]int // by how many nodes were restarted
}

func newCluster(ctx context.Context, s settings, number uint64) (*cluster, error) {
	servers, err := redisproc.Start(ctx, nodes)
	if err != nil {
		return nil, err
	}
	c := &cluster{settings: s, servers: servers, random: rand.New(rand.NewPCG(s.seed, number)),
		ledger: newLedger()}
	for i := range s.clients {
		client, err := redlock.New(redlock.Config{
			Addrs: servers.Addrs(), TTL: s.ttl, Identity: fmt.Sprintf("client-%d", i),
			DisableRestartGuard: !s.guard, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

func (c *cluster) close() error {
	var errs []error
	for _, client := range c.clients {
		// A node that is down at the end keeps what it has for a TTL: no fault here.
		_ = client.Close()
	}
	return errors.Join(append(errs, c.servers.Close())...)
}

// run lets the clients compete and goes through episodes while there are some left, or until a
// violation that was waited for is found.
func (c *cluster) run(ctx context.Context, left *atomic.Int64, done func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var contending sync.WaitGroup
	defer contending.Wait()
	defer cancel()
	for i, client := range c.clients {
		for n := range c.settings.names {
			k := contender{client: client, ledger: c.ledger, name: fmt.Sprintf("name-%d", n),
				ttl: c.settings.ttl, random: rand.New(rand.NewPCG(c.random.Uint64(), uint64(i)))}
			contending.Go(func() { k.compete(ctx) })
		}
	}
	for ctx.Err() == nil && left.Add(-1) >= 0 {
		if err := c.episode(ctx); err != nil {
			return err
		}
		done()
		if c.settings.expect && c.ledger.violated() {
			return nil
		}
	}
	// What the last one led to is to be seen, too.
	pause(ctx, 2*c.settings.ttl)
	return nil
}

// episode waits until locks are held and, at a random moment after that, lets nodes forget. One in
// four does not wait, so that nodes also forget while they or others still give no vote.
func (c *cluster) episode(ctx context.Context) error {
	if c.random.IntN(4) > 0 && !c.ledger.awaitHolder(ctx, c.settings.names) {
		return nil
	}
	pause(ctx, c.upTo(c.settings.ttl/2))
	if ctx.Err() != nil {
		return nil
	}
	many := restarted[c.random.IntN(len(restarted))]
	c.episodes[many]++
	return c.forget(c.random.Perm(nodes)[:many])
}

// forget kills nodes and starts them again empty: all at once, or one shortly after the other.
func (c *cluster) forget(which []int) error {
	var spread time.Duration
	if c.random.IntN(2) == 0 {
		spread = c.settings.ttl / 8
	}
	errs := make([]error, len(which))
	var restarts sync.WaitGroup
	for i, node := range which {
		after, down := c.upTo(spread), c.upTo(c.settings.ttl/16)
		restarts.Go(func() {
			time.Sleep(after)
			err := c.servers[node].Kill()
			time.Sleep(down)
			errs[i] = errors.Join(err, c.servers[node].Restart(true))
		})
	}
	restarts.Wait()
	return errors.Join(errs...)
}

// upTo is a random span below d.
func (c *cluster) upTo(d time.Duration) time.Duration { return upTo(c.random, d) }

func upTo(random *rand.Rand, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(random.Int64N(int64(d)))
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
