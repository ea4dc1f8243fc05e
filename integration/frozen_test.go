package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

// Nodes that stand still: connections are accepted, nothing is answered, and what was sent is done
// when they go on.

func TestAFrozenMinorityCostsNothing(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	each(r, 2, r.Nodes, (*Node).Pause)
	if s.rival(r, b, 2*ttl) {
		t.Error("the rival has it")
	}
	r.held(s.first)
	r.quick(a, 50)
	each(r, 2, r.Nodes, (*Node).Unpause)
	r.free(s.first)
	r.gone(2*ttl, "k")
	r.gone(2*ttl, "beside it 49")
}

func TestAFrozenMajorityEndsTheLockInTime(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	each(r, 3, r.Nodes, (*Node).Pause)
	if s.rival(r, b, ttl/2) {
		t.Fatal("the rival has it")
	}
	r.lostWithin(ttl, s.first)
	each(r, 3, r.Nodes, (*Node).Unpause)
	// What was asked of them in the meantime is done now; none of it is the lock of anybody.
	if !s.rival(r, b, 3*ttl) {
		t.Fatal("no locks any more")
	}
	r.held(s.second)
	r.free(s.second)
	r.gone(2*ttl, "k")
}

// A node freezes under a release, and takes the lock's key with it into its next life.
func TestAFrozenNodeThatMissedAReleaseIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	cfg := redlock.Config{TTL: 20 * time.Second}
	a, b := r.admitted(cfg), r.open(cfg)
	l := r.take(a, "k")
	r.must(r.Nodes[0].Pause())
	r.free(l)
	r.free(r.takeWithin(5*time.Second, b, "k"))
	r.must(r.Nodes[0].Unpause())
	r.gone(10*time.Second, "k")
}

// erpc/erpc 1113; redis/go-redis 2145, 2641: a client with default options does not cut a command
// in flight, and its retries add up.
func TestClientsWithDefaultOptionsAreBoundedAllTheSame(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	started := r.goroutines()
	c := r.admitted(redlock.Config{Clients: r.ownClients(), NodeTimeout: 250 * time.Millisecond})
	l := r.take(c, "k", redlock.WithoutRenewal())
	each(r, 3, r.Nodes, (*Node).Pause)
	before := started.count()
	for i := range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		_, err := c.TryLock(ctx, fmt.Sprint("k", i))
		took := time.Since(began)
		cancel()
		if !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no quorum or the context's end", err)
		}
		if took > 1300*time.Millisecond { // 300 ms, on a busy machine
			t.Errorf("try %d took %v, want about 300 ms", i, took)
		}
	}
	began := time.Now()
	_ = l.Unlock(t.Context())
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("unlock took %v, want about 2 x 250 ms", took)
	}
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			for j := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				if _, err := c.TryLock(ctx, fmt.Sprint(i, "/", j)); err == nil {
					t.Error("a lock without a majority")
				}
				cancel()
			}
		})
	}
	callers.Wait()
	t.Logf("%d goroutines before, %d after 1,000 calls more", before, started.count())
	each(r, 3, r.Nodes, (*Node).Unpause)
	r.free(r.takeWithin(4*ttl, c, "after"))
	started.fallTo(before + 5) // of nodes that are spoken to again
}

// ownClients are clients of a user's own, with default options.
func (r *rig) ownClients() (clients []*redis.Client) {
	for _, addr := range r.Addrs() {
		c := redis.NewClient(&redis.Options{Addr: addr})
		r.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	return clients
}
