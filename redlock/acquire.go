package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/window"
	"github.com/quorumlock/quorumlock/quorum"
)

// maxAttempts is how often TryLock asks, with a fresh owner token each time, when votes split.
const maxAttempts = 3

// mostTries is how many tries of a Client are under way at once; where that is too much for the
// nodes, fewer. Without a bound, 20,000 calls at once on loopback kept each other from an answer
// until all but 151 had failed.
const mostTries = quorum.MaxBatch

// TryLock takes the lock if nobody holds it. It does not wait for a holder: it blocks at most
// 2 x NodeTimeout (for a TTL below 4 x NodeTimeout, TTL/2), usually one round trip, and at most
// until ctx ends. When several try at the same moment, one of them wins. Of thousands that one
// Client makes at once, those that do not get their turn in that time fail with ErrNoQuorum.
//
// On failure nothing is held, and the error matches ErrHeld (another holds it; a RoundError says
// who and for how long), ErrNoQuorum (too few nodes gave a vote; a RoundError says which and why),
// ErrInvalid, ErrClosed, or the context's error.
func (c *Client) TryLock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	o, err := c.options(opts)
	if err != nil {
		return nil, during("lock", name, err)
	}
	if err := c.begin(ctx, "lock", name); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	return c.tryOnce(ctx, name, o, 0)
}

// tryOnce is TryLock without its checks. order is for those who have to wait for their turn.
func (c *Client) tryOnce(
	ctx context.Context, name string, o lockOptions, order time.Duration,
) (*Lock, error) {
	called, takes := time.Now(), c.tryTakes(o)
	until := called.Add(takes)
	how := window.Wait{By: until.Add(-takes / 2), Order: order} // the rest is for the try itself
	return c.inTurn(ctx, name, how, func() (*Lock, error) {
		return c.try(ctx, name, o, nil, called, until)
	})
}

// tryTakes is how long a try takes at the most.
func (c *Client) tryTakes(o lockOptions) time.Duration {
	return 2 * min(c.cfg.NodeTimeout, o.ttl/4)
}

// inTurn makes a try as soon as not too many others are under way. If ctx or the client ends before
// that, or it takes longer than the Wait says, there is none.
func (c *Client) inTurn(
	ctx context.Context, name string, how window.Wait, try func() (*Lock, error),
) (*Lock, error) {
	how.Closed = c.done
	place, err := c.tries.Enter(ctx, how)
	switch {
	case errors.Is(err, window.ErrClosed):
		return nil, c.outcomeError("lock", name, quorum.Outcome{Err: quorum.ErrStopped})
	case errors.Is(err, window.ErrNoTurn):
		e := c.outcomeError("lock", name, quorum.Outcome{Verdict: quorum.NoQuorum})
		e.detail = "the nodes were not asked: too many calls of this client went before"
		return nil, e
	case err != nil:
		return nil, c.outcomeError("lock", name,
			quorum.Outcome{Verdict: quorum.NoQuorum, Err: err})
	}
	result := window.Plain
	defer func() { place.Leave(result) }()
	l, err := try()
	switch {
	case err == nil, errors.Is(err, ErrHeld):
		result = window.Smoothly
	case isSilence(err):
		result = window.Badly
	}
	return l, err
}

// isSilence reports whether a try failed because nodes did not answer in time: so many that it would
// have failed whatever the others said.
func isSilence(err error) bool {
	var round *RoundError
	if !errors.As(err, &round) {
		return false
	}
	silent := 0
	for _, node := range round.Errs {
		if quorum.NoAnswerInTime(node) {
			silent++
		}
	}
	return silent > round.Nodes-round.Quorum
}

// try makes up to maxAttempts attempts, until then. w is who waits for the lock, nil for who does not;
// called is when the user's call began, for the observer.
func (c *Client) try(
	ctx context.Context, name string, o lockOptions, w *waiter, called, until time.Time,
) (*Lock, error) {
	rank := quorum.Unranked
	if w != nil {
		rank = w.rank.now()
	}
	for attempt := 1; ; attempt++ {
		asked := time.Now()
		out := c.engine.Acquire(ctx, quorum.Claim{
			Name: name, Token: quorum.NewRankedToken(c.cfg.Identity, rank), TTL: o.ttl, Until: until,
		})
		if out.Verdict == quorum.Won {
			l, err := c.newLock(ctx, name, o, out)
			c.cfg.Observer.round(Round{Op: "lock", Name: name, Votes: out.Votes,
				Nodes: c.engine.Nodes(), Took: time.Since(asked), Err: err})
			if err != nil {
				return nil, err
			}
			c.cfg.Observer.gained(Event{Name: name, Token: l.fencing, Took: time.Since(called)})
			return l, nil
		}
		err := c.outcomeError("lock", name, out)
		c.cfg.Observer.round(Round{Op: "lock", Name: name, Votes: out.Votes,
			Nodes: c.engine.Nodes(), Took: time.Since(asked), Err: err})
		if out.Verdict != quorum.Split || attempt == maxAttempts {
			return nil, err
		}
		// The one that stayed needs some rounds to collect what the others gave back, and who asks
		// sooner takes it away again: with pauses of one round, 20 contenders needed 28 ms at p99
		// for a winner and left one loser in six without an answer; with four, 11 ms and none.
		round, left := max(2*time.Millisecond, time.Since(asked)), time.Until(until)
		pause := min(4*time.Duration(attempt)*round, left/3)
		goesOn := left >= 2*round
		switch {
		case !goesOn:
		case w != nil:
			goesOn = w.rest(ctx, pause)
		default:
			goesOn = c.pause(ctx, pause)
		}
		if !goesOn {
			return nil, err
		}
	}
}

// pause waits for d and reports whether nothing came in between.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.done:
	}
	return false
}

// outcomeError turns a lost attempt into an error.
func (c *Client) outcomeError(op, name string, out quorum.Outcome) *RoundError {
	e := c.roundError(op, name, out.Errs)
	e.Votes = out.Votes
	e.Holder, e.Remaining = quorum.Identity(out.Holder), out.Remaining
	e.rival = out.Holder
	e.waits = out.Verdict == quorum.NoQuorum && slices.ContainsFunc(out.Errs, func(n quorum.NodeErr) bool {
		var wait *quorum.WaitError
		return errors.As(n.Err, &wait)
	})
	switch {
	case errors.Is(out.Err, quorum.ErrStopped):
		e.kinds = []error{ErrClosed}
	case out.Err != nil:
		e.kinds = []error{ErrNoQuorum, out.Err}
		e.detail = "the context ended before the nodes had decided"
		if e.Votes >= e.Quorum {
			e.detail = "the context ended first"
		}
	case out.Verdict == quorum.Held:
		e.kinds = []error{ErrHeld}
	case out.Verdict == quorum.Split:
		e.kinds, e.split = []error{ErrNoQuorum}, true
		e.detail = "the votes are split between contenders"
	case out.Unraised:
		e.kinds = []error{ErrNoQuorum}
		e.detail = "too few nodes took the fencing token in time"
	default:
		e.kinds = []error{ErrNoQuorum}
	}
	return e
}

// roundError begins the error of a round.
func (c *Client) roundError(op, name string, errs []quorum.NodeErr) *RoundError {
	e := &RoundError{Op: op, Name: name, Quorum: c.engine.Quorum(), Nodes: c.engine.Nodes(),
		asker: c.cfg.Identity}
	for _, err := range errs {
		e.Errs = append(e.Errs,
			&NodeError{Node: c.engine.NodeName(err.Node), Op: op, Err: explain(err.Err)})
	}
	return e
}
