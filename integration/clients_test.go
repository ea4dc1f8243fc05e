package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

// Clients of the users' own, with whatever options; and very many callers at once.

func TestOnesOwnClientsOfAnyKind(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*redis.Options){
		"defaults":         func(*redis.Options) {},
		"one connection":   func(o *redis.Options) { o.PoolSize = 1 },
		"old protocol":     func(o *redis.Options) { o.Protocol = 2 },
		"no retries":       func(o *redis.Options) { o.MaxRetries = -1 },
		"many retries":     func(o *redis.Options) { o.MaxRetries = 10 },
		"a name, a number": func(o *redis.Options) { o.ClientName, o.DB = "billing", 3 },
		"heeds contexts":   func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"long time-outs": func(o *redis.Options) {
			o.ReadTimeout, o.WriteTimeout = time.Minute, time.Minute
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := on(t, 3)
			own := func() (clients []*redis.Client) {
				for _, addr := range r.Addrs() {
					o := &redis.Options{Addr: addr}
					change(o)
					c := redis.NewClient(o)
					t.Cleanup(func() { c.Close() })
					clients = append(clients, c)
				}
				return clients
			}
			a, b := r.admitted(redlock.Config{Clients: own()}), r.open(redlock.Config{Clients: own()})
			r.useAll(a, b)
			// A node stands still under them, and another dies and comes back.
			s := r.contest(a, "k")
			r.must(r.Nodes[0].Pause())
			if s.rival(r, b, ttl) {
				t.Error("the rival has it")
			}
			// Its key ended while it stood still. Without waiting for the next, two nodes in a row
			// would lose theirs within one renewal.
			r.must(r.Nodes[0].Unpause())
			r.everywhere(b, "k")
			r.must(r.Nodes[1].Kill(), r.Nodes[1].Start())
			if s.rival(r, b, 2*ttl) {
				t.Error("the rival has it")
			}
			r.held(s.first)
			r.free(s.first)
			r.free(r.takeWithin(2*ttl, b, "k"))
		})
	}
}

// useAll uses all that a client can do with a lock.
func (r *rig) useAll(a, b *redlock.Client) {
	r.Helper()
	ctx := r.Context()
	l := r.take(a, "all", redlock.WithMinHold(time.Millisecond))
	r.must(l.Extend(ctx))
	status, err := b.Inspect(ctx, "all")
	if err != nil || status.Votes < status.Quorum || status.Token < l.Token() {
		r.Errorf("Inspect: %+v, %v; want votes of a majority and at least token %d", status, err,
			l.Token())
	}
	handle, err := l.Detach()
	r.must(err)
	l, err = a.Resume(ctx, handle)
	r.must(err)
	got := r.waits(ctx, b, "all")
	r.free(l)
	w := <-got
	r.must(w.err)
	if w.lock.Token() <= l.Token() {
		r.Errorf("token %d after %d", w.lock.Token(), l.Token())
	}
	r.free(w.lock)
	r.must(a.Do(ctx, "all", func(context.Context, *redlock.Lock) error { return nil }))
	for _, n := range a.Nodes(ctx) {
		if !n.Reachable || n.Err != nil || n.Version == "" {
			r.Errorf("node %s: %+v", n.Node, n)
		}
	}
}

// redis/go-redis 1737, 3289: after a restart all retries were spent on dead pooled connections.
func TestRestartsUnderWarmPools(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	var clients []*redis.Client
	for _, addr := range r.Addrs() {
		c := redis.NewClient(&redis.Options{Addr: addr, MinIdleConns: 20})
		t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	c := r.admitted(redlock.Config{Clients: clients})
	r.free(r.take(c, "k"))
	for i, client := range clients {
		r.within(10*time.Second, "the pool is warm",
			func() bool { return client.PoolStats().IdleConns >= 20 })
		if i < 3 {
			r.must(r.Nodes[i].Kill(), r.Nodes[i].StartEmpty())
		}
	}
	r.admit(c) // not the guard is tested here
	failed := 0
	for range 5 {
		l, err := c.TryLock(t.Context(), "k")
		if err != nil {
			failed++
			t.Logf("after the restart: %v", err)
			continue
		}
		r.free(l)
	}
	if failed > 1 {
		t.Errorf("%d of 5 rounds failed, want at most one", failed)
	}
}

// A storm: callers by the hundred in two processes' worth of clients, while nodes die, freeze, and
// drop all connections.
func TestAStormOfCallersUnderFaults(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	cfg := redlock.Config{TTL: 10 * time.Second, NodeTimeout: 2 * time.Second}
	a, b := r.admitted(cfg), r.open(cfg)
	var rooms [4]room
	var done, failed atomic.Int32
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	over := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 200 {
		client, slot := []*redlock.Client{a, b}[i%2], i/2%len(rooms)
		callers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				name := fmt.Sprint("k", slot)
				err := client.Do(ctx, name, func(ctx context.Context, l *redlock.Lock) error {
					rooms[slot].use(ctx, t, l)
					return nil
				})
				if err != nil && !errors.Is(err, redlock.ErrLost) {
					failed.Add(1)
				}
				done.Add(1)
			}
		})
	}
	each(r, 5, r.Nodes, func(n *Node) error { return n.Drop() })
	r.must(r.Nodes[0].Kill(), r.Nodes[1].Pause())
	r.must(r.Nodes[0].StartEmpty(), r.Nodes[1].Unpause())
	r.must(r.Nodes[2].Cut(), r.Nodes[2].Heal())
	r.must(r.Nodes[3].Slow(100*time.Millisecond, 0), r.Nodes[3].Heal())
	r.within(40*time.Second, "a thousand turns", func() bool { return done.Load() > 1000 })
	close(over)
	callers.Wait()
	t.Logf("%d turns, %d without the lock", done.Load(), failed.Load())
	if failed.Load() > done.Load()/10 {
		t.Errorf("%d of %d turns failed", failed.Load(), done.Load())
	}
	r.free(r.takeWithin(10*time.Second, a, "after"))
}
