package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/quorum"
)

// The door lets redlocktest and the packages above in, without public names for it.
func init() {
	door.NewClient = func(config any, nodes []quorum.Node, clk clock.Clock) (any, error) {
		cfg := config.(Config)
		cfg.Addrs, cfg.Clients = nil, nil
		for _, node := range nodes {
			cfg.Addrs = append(cfg.Addrs, node.Name())
		}
		cfg, err := cfg.withDefaults()
		if err != nil {
			return nil, err
		}
		return newClient(cfg, nodes, clk), nil
	}
	door.NewLooker = func(config any) (any, error) {
		cfg := config.(Config)
		cfg.lookOnly = true
		return New(cfg)
	}
	door.Engine = func(client any) *quorum.Engine { return client.(*Client).engine }
	door.Open = func(client any) door.Access {
		c, _ := client.(*Client)
		if !c.made() {
			return door.Access{}
		}
		return c.access()
	}
}

func (c *Client) access() door.Access {
	return door.Access{
		Engine: c.engine, Clock: c.clock, Logger: c.log, Identity: c.cfg.Identity,
		NodeTimeout: c.cfg.NodeTimeout, TTL: c.cfg.TTL, MaxTTL: c.cfg.MaxTTL,
		DriftFactor: c.cfg.DriftFactor, Done: c.done,
		Lock: c.lockOurs,
		Waiting: func(name string) error {
			if last := c.lines.last(name); last != nil {
				return last
			}
			return nil
		},
		Hold: func(lock any) quorum.Hold {
			l := lock.(*Lock)
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.hold()
		},
		Error: func(op, name string, out quorum.Outcome) error {
			return c.outcomeError(op, name, out)
		},
		HoldError: func(op, name string, kind error, got quorum.Confirmation) error {
			e := c.roundError(op, name, got.Errs)
			e.Votes, e.kinds = got.Tally.Ours, []error{kind}
			e.Holder, e.Remaining = quorum.Identity(got.Holder), got.Remaining
			if got.Err != nil {
				e.kinds = append(e.kinds, got.Err)
			} else if kind == ErrNoQuorum && e.Votes >= e.Quorum {
				e.detail = "the lease was over by then"
			}
			return e
		},
	}
}

// lockOurs is TryLock or Lock for a name of our own, beginning with "ql:".
func (c *Client) lockOurs(ctx context.Context, name string, wait bool, opts ...any) (any, error) {
	var options []LockOption
	for _, opt := range opts {
		options = append(options, opt.(LockOption))
	}
	o, err := c.options(options)
	if err != nil {
		return nil, err
	}
	if err := c.enter(ctx, "lock", name); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	if wait {
		return asAny(c.waitFor(ctx, name, o))
	}
	return asAny(c.tryOnce(ctx, name, o, beforeAll))
}

// beforeAll is the order of tries from above: whose tick it is has been settled by then, so they go
// before those of the application.
const beforeAll = -time.Hour

// asAny keeps a nil *Lock from becoming an any that is not nil.
func asAny(l *Lock, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
