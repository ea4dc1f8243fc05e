package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A run on request is no tick: it takes the claim lock, for a fencing token in order with those of
// ticks and so that it never falls between a tick's claim and its commit, and commits nothing. So
// it uses up no tick.

// manualTick is an instant that is always due and never on record.
const manualTick = 1

// manual gets a run on request, or says why not. It blocks for mostGrace at the most, or until ctx
// ends. life is how long the marks of the job's ticks have to live: whatever touches them says so.
func (c *claimer) manual(ctx context.Context, at time.Time, life time.Duration) (*grant, error) {
	d := due{at: at, own: at, grace: mostGrace}
	return c.insist(ctx, d, mostGrace, func(until time.Time) answer {
		return c.attemptManual(ctx, d, life, until)
	})
}

func (c *claimer) attemptManual(
	ctx context.Context, d due, life time.Duration, until time.Time,
) answer {
	ttl := claimTTL(d.grace, c.access.NodeTimeout, c.access.MaxTTL)
	out := c.access.Engine.Acquire(ctx, quorum.Claim{
		Name: "ql:job:" + c.job, Token: quorum.NewToken(c.access.Identity), TTL: ttl,
		Until: c.attemptEnd(ttl, until), Tick: manualTick, Life: life,
	})
	switch {
	case out.Err != nil:
		return answer{err: c.refusal(ErrTickUndecided, d, out, ""), final: true}
	case out.Verdict != quorum.Won:
		out.Verdict = quorum.NoQuorum
		return answer{err: c.refusal(ErrTickUndecided, d, out, "")}
	}
	defer out.Free()
	lock, state, err := c.runLock(ctx)
	switch state {
	case stateRun:
		return answer{grant: &grant{at: d.at.UTC(), fencing: out.Fencing, lock: lock,
			votes: out.Votes, manual: true}}
	case stateSkip:
		return answer{final: true, err: &tickError{kind: ErrTickTaken, job: c.job, at: d.at,
			why: "a run is under way", cause: err}}
	}
	return answer{final: errors.Is(err, redlock.ErrClosed),
		err: &tickError{kind: ErrTickUndecided, job: c.job, at: d.at, why: "no run lock", cause: err}}
}
