package redlock

import (
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A LockOption changes one call of TryLock, Lock or Do.
type LockOption func(*lockOptions)

type lockOptions struct {
	holdOptions
	keyLife time.Duration // Resume: how long keys may live that were set before
	faults  []error
}

// holdOptions are those that matter while the lock is held.
type holdOptions struct {
	ttl        time.Duration
	renewEvery time.Duration
	maxHold    time.Duration // 0: no limit
	minHold    time.Duration
	noRenewal  bool
}

// WithTTL asks for a TTL other than Config.TTL: more than 0 and at most Config.MaxTTL, and long
// enough that validity is left after the drift allowance. The nodes round parts of a millisecond
// up. Rounds for this lock take at most a quarter of it, and it is renewed every third.
func WithTTL(ttl time.Duration) LockOption {
	return func(o *lockOptions) { o.ttl, o.renewEvery = ttl, ttl/3 }
}

// WithMaxHold bounds how long the lock is renewed: it ends at the latest this long after the
// round that won it began. Its context ends before its keys do, with a cause that matches ErrLost.
func WithMaxHold(d time.Duration) LockOption {
	return func(o *lockOptions) {
		if d <= 0 {
			o.faults = append(o.faults, invalid("WithMaxHold(%v): must be positive", d))
		}
		o.maxHold = d
	}
}

// WithMinHold keeps the name taken for at least d, counted from the round that won it: Unlock
// before that does not free the lock but shortens it, in one step on each node, so that it ends by
// itself at that time. At most the lock's TTL. It is for work that must not be repeated within d,
// however short it is. Close frees at once.
func WithMinHold(d time.Duration) LockOption {
	return func(o *lockOptions) {
		if d <= 0 {
			o.faults = append(o.faults, invalid("WithMinHold(%v): must be positive", d))
		}
		o.minHold = d
	}
}

// WithoutRenewal leaves renewing to you: the lock ends with its validity unless you call Extend.
func WithoutRenewal() LockOption {
	return func(o *lockOptions) { o.noRenewal = true }
}

// options puts the options together and checks them, all faults at once.
func (c *Client) options(opts []LockOption) (lockOptions, error) {
	if !c.made() {
		return lockOptions{}, errNotMade
	}
	usual := holdOptions{ttl: c.cfg.TTL, renewEvery: c.cfg.RenewEvery}
	if len(opts) == 0 { // New has checked these
		return lockOptions{holdOptions: usual}, nil
	}
	o := lockOptions{holdOptions: usual}
	fault := func(format string, args ...any) { o.faults = append(o.faults, invalid(format, args...)) }
	for _, opt := range opts {
		if opt == nil {
			fault("a LockOption is nil")
			continue
		}
		opt(&o)
	}
	option, most := "WithTTL", "the lock's TTL, %v; see WithTTL"
	if o.ttl <= 0 || o.ttl > c.cfg.MaxTTL {
		if o.ttl <= 0 {
			fault("WithTTL(%v): must be positive", o.ttl)
		} else {
			fault("WithTTL(%v): above Config.MaxTTL, %v", o.ttl, c.cfg.MaxTTL)
		}
		// The others are at fault only if they would be with every TTL that is allowed.
		o.ttl, most = c.cfg.MaxTTL, "Config.MaxTTL, %v"
	}
	if o.maxHold > 0 && o.maxHold < o.ttl {
		option, most = "WithMaxHold", "WithMaxHold, %v"
		o.ttl, o.renewEvery = o.maxHold, min(o.renewEvery, o.maxHold/3)
	}
	if o.minHold > o.ttl {
		fault("WithMinHold(%v): above "+most, o.minHold, o.ttl)
	}
	if drift := quorum.Drift(o.ttl, c.cfg.DriftFactor); drift >= o.ttl {
		fault("%s(%v): leaves no validity after the drift allowance of %v", option, o.ttl, drift)
	}
	return o, errors.Join(o.faults...)
}
