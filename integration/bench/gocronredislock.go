package main

import (
	"context"
	"errors"

	redislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
)

// viaGocron is gocron-redis-lock, gocron's own locker, as its README sets it up: one try
// (WithTries(1)), all else by default. It takes one client of Redis, so here one node: redsync with
// one node to ask. A crash of that node loses its locks.
type viaGocron struct {
	redis  *redis.Client
	locker gocron.Locker
}

func openGocron(_ context.Context, addrs []string, dial dialer) (client, error) {
	if dial != nil {
		return nil, errNoDialer
	}
	return newViaGocron(redis.NewClient(&redis.Options{Addr: addrs[0]}))
}

// newViaGocron closes the client with the locker, and if there is none.
func newViaGocron(c *redis.Client) (*viaGocron, error) {
	locker, err := redislock.NewRedisLocker(c, redislock.WithTries(1))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &viaGocron{redis: c, locker: locker}, nil
}

// lock does not wait: who does not get the lock skips the tick.
func (g *viaGocron) lock(ctx context.Context, name string) (held, error) { return g.try(ctx, name) }

func (g *viaGocron) try(ctx context.Context, name string) (held, error) {
	l, err := g.locker.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (g *viaGocron) close() error { return g.redis.Close() }
