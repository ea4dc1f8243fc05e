package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/bare"
	"github.com/quorumlock/quorumlock/redlock"
)

// A library takes a lock that nobody else wants, and gives it back.
type library struct {
	name string
	pair func(ctx context.Context, name string) error
	bare *bare.Scripts // instead: the nodes alone
}

// open makes the libraries ready, ours first, each with connections of its own.
func open(
	ctx context.Context, addrs []string, s settings,
) (libs []library, closeAll func() error, err error) {
	if s.guard {
		return openGuards(addrs)
	}
	ours, err := openOurs(addrs, true)
	if err != nil {
		return nil, nil, err
	}
	clients := make([]*goredislib.Client, len(addrs))
	pools := make([]redis.Pool, len(addrs))
	for i, addr := range addrs {
		clients[i] = goredislib.NewClient(&goredislib.Options{Addr: addr, PoolSize: s.pool})
		pools[i] = goredis.NewPool(clients[i])
	}
	ceiling, err := bare.Open(ctx, addrs, nil)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	sync := redsync.New(pools...)
	libs = []library{
		{name: "quorumlock", pair: oursPair(ours)},
		{name: "bare scripts", bare: ceiling},
		{name: "redsync", pair: redsyncPair(sync, false)},
		{name: "redsync fail-fast", pair: redsyncPair(sync, true)},
	}
	return libs, func() error {
		err := errors.Join(ours.Close(), ceiling.Close())
		for _, client := range clients {
			err = errors.Join(err, client.Close())
		}
		return err
	}, nil
}

func openOurs(addrs []string, guard bool) (*redlock.Client, error) {
	return redlock.New(redlock.Config{Addrs: addrs, DisableRestartGuard: !guard,
		Logger: slog.New(slog.DiscardHandler)})
}

// openGuards makes two of ours, with the restart guard and without.
func openGuards(addrs []string) (libs []library, closeAll func() error, err error) {
	on, errOn := openOurs(addrs, true)
	off, errOff := openOurs(addrs, false)
	if err := errors.Join(errOn, errOff); err != nil {
		return nil, nil, err
	}
	libs = []library{{name: "guard on", pair: oursPair(on)}, {name: "guard off", pair: oursPair(off)}}
	return libs, func() error { return errors.Join(on.Close(), off.Close()) }, nil
}

// oursPair uses Lock rather than TryLock because nodes that have just started give no vote for the
// time of a TTL: the first call waits for them.
func oursPair(c *redlock.Client) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		l, err := c.Lock(ctx, name)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
}

func redsyncPair(r *redsync.Redsync, failFast bool) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		m := r.NewMutex(name, redsync.WithTries(1), redsync.WithFailFast(failFast))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		// With fail-fast an unlock that overtakes its own lock's last messages is a success.
		if ok, err := m.UnlockContext(ctx); !ok {
			return fmt.Errorf("redsync did not unlock %s: %w", name, err)
		}
		return nil
	}
}
