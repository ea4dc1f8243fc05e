package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// viaRedislock is bsm/redislock, on one node: a crash of that node loses its locks.
type viaRedislock struct {
	redis *redis.Client
	locks *redislock.Client
}

// What redislock leaves to its users: the life of a lock, the same as ours, and the pause between
// two tries, the least that it advises.
const (
	redislockTTL   = 10 * time.Second
	redislockPause = 16 * time.Millisecond
)

func openRedislock(_ context.Context, addrs []string, dial dialer) (client, error) {
	if dial != nil {
		return nil, errNoDialer
	}
	c := redis.NewClient(&redis.Options{Addr: addrs[0]})
	return &viaRedislock{redis: c, locks: redislock.New(c)}, nil
}

func (r *viaRedislock) lock(ctx context.Context, name string) (held, error) {
	return r.obtain(ctx, name, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(redislockPause)})
}

func (r *viaRedislock) try(ctx context.Context, name string) (held, error) {
	return r.obtain(ctx, name, nil)
}

func (r *viaRedislock) obtain(
	ctx context.Context, name string, options *redislock.Options,
) (held, error) {
	// Without a deadline of ctx it gives up after the TTL, and the lock is that of the try.
	l, err := r.locks.Obtain(ctx, name, redislockTTL, options)
	if err != nil {
		return nil, err
	}
	return redislockHeld{l}, nil
}

func (r *viaRedislock) close() error { return r.redis.Close() }

type redislockHeld struct{ lock *redislock.Lock }

func (h redislockHeld) Unlock(ctx context.Context) error { return h.lock.Release(ctx) }
