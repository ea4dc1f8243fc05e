package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// viaRedsync is redsync over go-redis with its defaults. With failFast an attempt ends when its
// outcome is known, without it when all nodes have answered.
type viaRedsync struct {
	sync     *redsync.Redsync
	clients  []*redis.Client
	failFast bool
}

func openRedsync(failFast bool) func(context.Context, []string, dialer) (client, error) {
	return func(ctx context.Context, addrs []string, dial dialer) (client, error) {
		r := &viaRedsync{failFast: failFast}
		if dial == nil {
			for _, addr := range addrs {
				r.clients = append(r.clients, redis.NewClient(&redis.Options{Addr: addr}))
			}
		} else {
			r.clients = dialAll(addrs, dial)
			if err := connect(ctx, r.clients, delayedConns); err != nil {
				return nil, errors.Join(err, closeAll(r.clients))
			}
		}
		pools := make([]redsyncredis.Pool, len(addrs))
		for i, client := range r.clients {
			pools[i] = goredis.NewPool(client)
		}
		r.sync = redsync.New(pools...)
		return r, nil
	}
}

// lock tries until ctx ends, with redsync's own pauses of 50 to 250 ms.
func (r *viaRedsync) lock(ctx context.Context, name string) (held, error) {
	return r.attempt(ctx, name, math.MaxInt32)
}

func (r *viaRedsync) try(ctx context.Context, name string) (held, error) {
	return r.attempt(ctx, name, 1)
}

func (r *viaRedsync) attempt(ctx context.Context, name string, tries int) (held, error) {
	m := r.sync.NewMutex(name, redsync.WithTries(tries), redsync.WithFailFast(r.failFast))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncHeld{m}, nil
}

func (r *viaRedsync) close() error { return closeAll(r.clients) }

type redsyncHeld struct{ mutex *redsync.Mutex }

// Unlock counts as redsync does: with fail-fast an unlock that overtakes its own lock's last
// messages is a success.
func (h redsyncHeld) Unlock(ctx context.Context) error {
	if ok, err := h.mutex.UnlockContext(ctx); !ok {
		return fmt.Errorf("redsync did not unlock %s: %w", h.mutex.Name(), err)
	}
	return nil
}
