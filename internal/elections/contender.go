package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorumlock/internal/delay"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A replica is one contender: its connections to all nodes, and each library's lock on top of
// them. It shares nothing with the other replicas.
type replica struct {
	clients []*goredislib.Client
	lock    *redlock.Client
	redsync *redsync.Redsync
}

// ttl is short because nodes that have just started give no vote for so long, and long enough that
// no time-out is shorter than with the default of ten seconds.
const ttl = 2 * time.Second

func newReplica(addrs []string, seed uint64, s settings) (*replica, error) {
	r := &replica{}
	var pools []redis.Pool
	for i, addr := range addrs {
		client := goredislib.NewClient(&goredislib.Options{
			Addr:                     addr,
			Dialer:                   delay.New(0, s.delay, seed+uint64(i)).Dial,
			MaxRetries:               -1,
			ContextTimeoutEnabled:    true,
			Protocol:                 2,
			DisableIdentity:          true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		r.clients = append(r.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	r.redsync = redsync.New(pools...)
	lock, err := redlock.New(redlock.Config{
		Clients: r.clients,
		TTL:     ttl,
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.lock = lock
	if err := r.connect(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// rehearse takes a lock, so that this replica knows the nodes as one that has run for a while does.
// The nodes have just started and give no vote for the time of a TTL: the first one waits for it.
func (r *replica) rehearse(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*ttl)
	defer cancel()
	l, err := r.lock.Lock(ctx, name)
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}

// connect opens the connections beforehand, as those of a service that has run for a while are.
func (r *replica) connect() error {
	const perNode = 4
	errs := make([]error, len(r.clients))
	var wg sync.WaitGroup
	for i, client := range r.clients {
		wg.Go(func() {
			var conns [perNode]*goredislib.Conn
			for k := range conns {
				conns[k] = client.Conn()
				errs[i] = errors.Join(errs[i], conns[k].Ping(context.Background()).Err())
			}
			for _, conn := range conns {
				errs[i] = errors.Join(errs[i], conn.Close())
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *replica) close() error {
	var errs []error
	if r.lock != nil {
		errs = append(errs, r.lock.Close())
	}
	for _, client := range r.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// counters of this replica's engine.
func (r *replica) counters() *quorum.Counters { return door.Engine(r.lock).Counters() }

// A library is one way to try for a lock once. A winner's free gives the lock back.
type library struct {
	name string
	ours bool
	try  func(ctx context.Context, r *replica, name string) (free func() error, err error)
}

// libraries are what is compared.
func libraries() []library {
	return []library{
		{name: "quorumlock", ours: true, try: tryOurs},
		{name: "redsync", try: tryRedsync(false)},
		{name: "redsync fail-fast", try: tryRedsync(true)},
	}
}

func tryOurs(ctx context.Context, r *replica, name string) (func() error, error) {
	l, err := r.lock.TryLock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func tryRedsync(failFast bool) func(context.Context, *replica, string) (func() error, error) {
	return func(ctx context.Context, r *replica, name string) (func() error, error) {
		m := r.redsync.NewMutex(name, redsync.WithTries(1), redsync.WithFailFast(failFast))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error {
			if ok, err := m.UnlockContext(ctx); !ok {
				return fmt.Errorf("redsync did not unlock %s: %w", name, err)
			}
			return nil
		}, nil
	}
}
