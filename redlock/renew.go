package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// leastRetry is the least time between a failed renewal and the next try.
const leastRetry = 10 * time.Millisecond

// refreshEvery is how often extends also prolong the fencing register's life of a week.
const refreshEvery = 24 * time.Hour

// nextLook is when the keeper has to look at the lock next. Called with l.mu held.
func (l *Lock) nextLook() time.Duration {
	if l.options.noRenewal || l.renewing {
		return l.until.Mono
	}
	return min(l.renewAt.Mono, l.until.Mono)
}

// tick is called by the keeper when the lock is due.
func (l *Lock) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge()
	if l.state != held {
		return
	}
	due := !l.options.noRenewal && !l.renewing && l.client.clock.Now().Until(l.renewAt) <= 0
	if due {
		l.renewing = true
	}
	l.client.keeper.schedule(l, l.nextLook())
	if due {
		l.client.keeper.enqueue(l)
	}
}

// renew starts a renewal, unless WithMaxHold leaves nothing to be gained by one, or the lock is
// over by now. It reports whether one is under way: the keeper's done is called then when it is
// decided.
func (l *Lock) renew() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge()
	if l.state != held {
		return false
	}
	now := l.client.clock.Now()
	ttl, ok := l.extendTTL(now)
	if !ok {
		l.renewing, l.renewAt = false, l.until
		return false
	}
	l.extend(now, ttl, func(x quorum.Extension, err error) {
		l.renewed(x, err)
		l.client.keeper.done()
	})
	return true
}

// renewed plans the next renewal.
func (l *Lock) renewed(x quorum.Extension, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewing = false
	if l.state != held {
		return
	}
	now := l.client.clock.Now()
	if err == nil {
		// From the validity reached, not from when this timer fired: lag does not add up.
		l.renewAt = x.Started.Add(l.options.renewEvery)
	} else {
		// Again and again while validity lasts, closer together towards its end.
		l.renewAt = now.Add(max(now.Until(l.until)/8, leastRetry))
	}
	l.client.keeper.schedule(l, l.nextLook())
}

// extendTTL is the TTL to ask for: less than the lock's own near the end of WithMaxHold. It is not
// ok when the validity would not grow. Called with l.mu held.
func (l *Lock) extendTTL(now clock.Reading) (time.Duration, bool) {
	ttl := l.options.ttl
	if ends, ok := l.ends(); ok {
		ttl = min(ttl, now.Until(ends))
	}
	if ttl <= 0 {
		return 0, false
	}
	return ttl, l.client.engine.ValidUntil(ttl, now).Mono > l.until.Mono
}

// extend asks the nodes; when they have decided it applies the verdict and calls done, without
// l.mu. Called with l.mu held, which it gives up in between.
func (l *Lock) extend(now clock.Reading, ttl time.Duration, done func(quorum.Extension, error)) {
	keepRegister := now.Since(l.refreshed) >= refreshEvery
	if keepRegister {
		l.refreshed = now
	}
	began := time.Now()
	l.rest = quorum.Rest{}
	hold := l.hold()
	decided := func(x quorum.Extension) {
		err := l.apply(x, ttl)
		l.client.cfg.Observer.round(Round{Op: "extend", Name: l.name, Votes: x.Tally.Ours,
			Nodes: l.client.engine.Nodes(), Took: time.Since(began), Err: err})
		done(x, err)
	}
	// The engine may call back before Extend returns, where nodes are known to fail. Should an
	// Unlock come in between, this extend finds no key of ours and its verdict is not looked at.
	l.mu.Unlock()
	l.client.engine.Extend(hold, ttl, keepRegister, decided, l.heal)
	l.mu.Lock()
}

// apply takes in what the nodes said to an extend.
func (l *Lock) apply(x quorum.Extension, ttl time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge() // an extend never succeeds after the local validity
	if l.state != held {
		return l.overError("extend")
	}
	c := l.client
	err := c.roundError("extend", l.name, x.Errs)
	err.Votes = x.Tally.Ours
	err.Holder, err.Remaining = quorum.Identity(x.Holder), x.Remaining
	switch {
	case x.Verdict == quorum.HoldGone:
		err.kinds = []error{ErrLost}
		err.detail = "its keys are gone from a majority of the nodes"
		if x.Tally.Rival >= c.engine.Quorum() {
			err.detail = "another has it"
		}
		l.lose(err, true)
		return err
	case c.misdated(x.Started):
		err.kinds = []error{ErrNoQuorum}
		err.detail = "the clocks of this machine stood still meanwhile"
		return err
	case x.Verdict == quorum.HoldUnknown:
		err.kinds = []error{ErrNoQuorum}
		return err
	}
	if until := c.engine.ValidUntil(ttl, x.Started); until.Mono > l.until.Mono {
		l.until = until
	}
	l.judge()
	if l.state != held {
		return l.overError("extend")
	}
	return nil
}

// heal plants the key on nodes that answered an extend without having it, as long as the lock is
// held: a plant must not come after the release.
func (l *Lock) heal(missing quorum.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge()
	if l.state != held || missing == 0 {
		return
	}
	now := l.client.clock.Now()
	ttl, _ := l.extendTTL(now)
	ttl = min(ttl, l.options.ttl)
	if now.Until(l.until) <= 0 || ttl < time.Millisecond {
		return
	}
	// What they say of the lock counts again when they have granted it under all rules.
	l.voters &^= missing
	planted := l.client.engine.Plant(l.hold(), ttl, l.fencing, missing&^(l.barred|l.planting), l.hear)
	l.touched |= planted
	l.planting |= planted
}

// overError says why a lock that is over cannot be used. Called with l.mu held.
func (l *Lock) overError(op string) *RoundError {
	e := &RoundError{Op: op, Name: l.name}
	switch l.state {
	case gone:
		e.kinds = []error{ErrLost}
		if cause, ok := l.cause.(*RoundError); ok {
			e.detail, e.Holder, e.Remaining = cause.detail, cause.Holder, cause.Remaining
			e.Errs = cause.Errs
		}
	case closed:
		e.kinds = []error{ErrClosed}
	default:
		e.kinds = []error{ErrNotHeld}
	}
	return e
}

// Extend prolongs the lock to its full TTL from now, by one round; renewal does the same by
// itself. It blocks until a majority has answered, at most NodeTimeout, and at most until ctx
// ends. Only nodes that still have the key count; those that miss it get it again afterwards.
//
// Errors: ErrLost: the lock is over, because its validity is, or because a majority of its keys
// was gone or another's (it ends at once). ErrNoQuorum: too few answers; the lock stays usable
// until Until. The context's error: the same. ErrNotHeld: it was freed. ErrClosed.
func (l *Lock) Extend(ctx context.Context) error {
	if l == nil || l.client == nil {
		return &RoundError{Op: "extend", kinds: []error{ErrNotHeld}}
	}
	if ctx == nil {
		return during("extend", l.name, invalid("the context is nil"))
	}
	if err := ctx.Err(); err != nil {
		return &RoundError{Op: "extend", Name: l.name, kinds: []error{err}}
	}
	result := make(chan error, 1)
	l.mu.Lock()
	l.judge()
	if l.state != held {
		defer l.mu.Unlock()
		return l.overError("extend")
	}
	now := l.client.clock.Now()
	ttl, ok := l.extendTTL(now)
	if !ok && ttl < time.Millisecond {
		defer l.mu.Unlock()
		e := &RoundError{Op: "extend", Name: l.name, kinds: []error{ErrInvalid}}
		e.detail = "WithMaxHold is used up"
		return e
	}
	l.extend(now, ttl, func(x quorum.Extension, err error) {
		if err == nil {
			l.mu.Lock()
			if l.state == held {
				l.renewAt = x.Started.Add(l.options.renewEvery)
				l.client.keeper.schedule(l, l.nextLook())
			}
			l.mu.Unlock()
		}
		result <- err
	})
	l.mu.Unlock()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		e := l.client.roundError("extend", l.name, nil)
		e.kinds = []error{ErrNoQuorum, ctx.Err()}
		e.detail = "the context ended before the nodes had decided"
		return e
	}
}
