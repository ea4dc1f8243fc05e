package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

// ours is quorumlock with everything on that is on by default: restart guard, clock watch, fencing
// tokens, renewal.
type ours struct {
	client *redlock.Client
	own    []*redis.Client // over the dialer; none: redlock dials for itself
}

func openOurs(ctx context.Context, addrs []string, dial dialer) (client, error) {
	cfg := redlock.Config{Logger: slog.New(slog.DiscardHandler)}
	o := &ours{}
	if dial == nil {
		cfg.Addrs = addrs
	} else {
		o.own = dialAll(addrs, dial)
		cfg.Clients = o.own
		if err := connect(ctx, o.own, delayedConns); err != nil {
			return nil, errors.Join(err, closeAll(o.own))
		}
	}
	var err error
	if o.client, err = redlock.New(cfg); err != nil {
		return nil, errors.Join(err, closeAll(o.own))
	}
	return o, nil
}

func (o *ours) lock(ctx context.Context, name string) (held, error) {
	l, err := o.client.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (o *ours) try(ctx context.Context, name string) (held, error) {
	l, err := o.client.TryLock(ctx, name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (o *ours) close() error { return errors.Join(o.client.Close(), closeAll(o.own)) }

// admit says that nodes which have just started hold no forgotten lock: without it they give no
// vote for the time of a TTL.
func admit(ctx context.Context, addrs []string) error {
	c, err := redlock.New(redlock.Config{Addrs: addrs, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(c.Admit(ctx), c.Close())
}
