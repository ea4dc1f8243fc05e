package schedule

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/window"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A claimer gets ticks of one job for this replica. One tick at the replica that runs it:
//
//	claim lock -> what is on record? -> commit -> run lock -> free the claim lock -> run
//
// The commit on a majority, before the run, makes the tick this replica's for good: nobody else
// runs it, even if this replica dies a moment later. The claim lock orders those who want to
// commit; the run lock is what keeps two runs of a job apart (OverlapSkip).
type claimer struct {
	access  door.Access
	job     string
	overlap Overlap
	now     func() time.Time // the clock that the schedule goes by
	steady  bool             // a commit that was sent is waited for even if the context ends
	turns   *window.Window   // all claimers' of a Scheduler or Locker

	mu sync.Mutex // guards below
	// Owner tokens of attempts of ours whose commit is not known to have failed, and which did not
	// start the tick for all that; and until when somebody may ask. Their marks count for nothing:
	// otherwise a commit whose acknowledgements were lost would make a tick that nobody runs
	// (protocol review, T3).
	unstarted map[string]time.Time
}

// A grant is a tick that this replica is to run.
type grant struct {
	at      time.Time
	fencing uint64
	lock    *redlock.Lock // the run lock; nil under OverlapAllow
	votes   int
	took    time.Duration // from the first message to the commit
	manual  bool
}

// An answer is what one attempt came to.
type answer struct {
	grant *grant
	err   error         // why there is none
	final bool          // it is of no use to ask again
	wait  time.Duration // before asking again; 0: the usual
}

// Between two attempts.
const (
	firstPause = 2 * time.Millisecond
	mostPause  = 50 * time.Millisecond
)

// The replicas claim the jobs of an instant a few at a time, each in an order of its own, and more
// as they find that they do not meet. All jobs at once, or in the same order, is all replicas at
// the same jobs, votes that split, and more messages than the nodes can answer in time: three
// replicas with 5,000 jobs ran 30 of them.
const (
	firstClaims = 8
	mostClaims  = quorum.MaxBatch
)

// standsBack is how much later than it came a claim goes, where it has to wait for its turn: at
// random, so that no two replicas go in the same order, and by how much time it has left, so that a
// tick every second need not wait for those that have half a minute.
func standsBack(left time.Duration) time.Duration { return rand.N(max(left/4, 1)) }

// newTurns makes what all claimers of a Scheduler or Locker share.
func newTurns(nodeTimeout time.Duration) *window.Window {
	return window.New(firstClaims, mostClaims, nodeTimeout/8)
}

// claim gets the tick, or says why not. It asks again as long as that can change, until the tick's
// patience is over; once at least, if it gets its turn. It blocks that long at the most, or until
// ctx ends; nothing is held then.
func (c *claimer) claim(ctx context.Context, d due) (*grant, error) {
	return c.insist(ctx, d, d.patience(c.now()), func(until time.Time) answer {
		return c.attempt(ctx, d, until)
	})
}

// insist makes attempts for as long as left, each in its turn.
func (c *claimer) insist(
	ctx context.Context, d due, left time.Duration, attempt func(until time.Time) answer,
) (*grant, error) {
	until := time.Now().Add(left)
	var got answer
	var began time.Time // the first attempt
	for pause := time.Duration(0); ; {
		place, err := c.turns.Enter(ctx, window.Wait{By: until, Closed: c.access.Done,
			Order: standsBack(time.Until(until))})
		if err != nil {
			if got.err == nil {
				got.err = c.noTurn(d, err)
			}
			return nil, got.err
		}
		asked := time.Now()
		if began.IsZero() {
			began = asked
		}
		got = func() (a answer) {
			defer func() { place.Leave(a.result()) }()
			return attempt(until)
		}()
		if got.grant != nil {
			got.grant.took = time.Since(began)
			return got.grant, nil
		}
		if got.final || ctx.Err() != nil {
			return nil, got.err
		}
		// The winner's commit takes as long as a round, and one to get its run lock.
		pause = min(max(2*pause, firstPause, 2*time.Since(asked)), mostPause)
		wait := pause
		if got.wait > 0 {
			wait, pause = got.wait, 0
		}
		if time.Until(until) <= wait {
			return nil, got.err
		}
		if !c.sleep(ctx, wait) {
			return nil, got.err
		}
	}
}

// noTurn is the error of a tick that the nodes were not asked about.
func (c *claimer) noTurn(d due, err error) error {
	out, why := quorum.Outcome{Verdict: quorum.NoQuorum}, ""
	switch {
	case errors.Is(err, window.ErrClosed):
		out.Err = quorum.ErrStopped
	case errors.Is(err, window.ErrNoTurn):
		why = "the nodes were not asked: too many other ticks went before"
	default:
		out.Err = err
	}
	return c.refusal(ErrTickUndecided, d, out, why)
}

// result is what the answer says of how many claims there may be at once: more if it settled the
// tick; fewer if it did not, as replicas get into each other's way, or the nodes do not keep up.
func (a answer) result() window.Result {
	switch {
	case a.grant != nil, errors.Is(a.err, ErrTickTaken):
		return window.Smoothly
	case a.final, a.wait > 0:
		return window.Plain
	}
	return window.Badly
}

// sleep waits for d and reports whether nothing came in between.
func (c *claimer) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.access.Done:
	}
	return false
}

// attempt claims the tick once, with an owner token of its own, and goes on if it may.
func (c *claimer) attempt(ctx context.Context, d due, until time.Time) answer {
	ttl := claimTTL(d.grace, c.access.NodeTimeout, c.access.MaxTTL)
	out := c.access.Engine.Acquire(ctx, quorum.Claim{
		Name: "ql:job:" + c.job, Token: quorum.NewToken(c.access.Identity), TTL: ttl,
		Until: c.attemptEnd(ttl, until), Tick: d.ms(), Life: d.life(),
	})
	verdict, owner, state := quorum.DecideTick(out.Reads, c.isUnstarted)
	switch {
	case out.Err != nil:
		return answer{err: c.refusal(ErrTickUndecided, d, out, ""), final: true}
	case verdict == quorum.TickTaken:
		out.Free()
		out.Verdict, out.Votes, out.Holder, out.Remaining = quorum.Held, 0, owner, 0
		return answer{err: c.refusal(ErrTickTaken, d, out, takenWords(state)), final: true}
	case d.tooLate(out.Reads, c.access.Engine.Quorum()):
		out.Free()
		out.Verdict = quorum.NoQuorum
		return answer{err: c.refusal(ErrTickTooLate, d, out, "Grace is over"), final: true}
	case out.Verdict == quorum.Won && verdict == quorum.TickFree:
		return c.proceed(ctx, d, out, ttl)
	case out.Verdict == quorum.Won:
		out.Free()
		out.Verdict, out.Holder = quorum.NoQuorum, owner
		return answer{err: c.refusal(ErrTickUndecided, d, out,
			"what nodes know that did not answer may decide")}
	case out.Early > 0:
		return answer{err: c.refusal(ErrTickTooEarly, d, out, "due in "+out.Early.String()),
			wait: out.Early}
	case out.Verdict == quorum.Held:
		// Whoever has it is about to commit, or has died and will be replaced.
		out.Verdict = quorum.NoQuorum
		return answer{err: c.refusal(ErrTickUndecided, d, out, "claimed, and not committed")}
	}
	return answer{err: c.refusal(ErrTickUndecided, d, out, "")}
}

// attemptEnd is when an attempt is given up: after two messages, one after the other.
func (c *claimer) attemptEnd(ttl time.Duration, until time.Time) time.Time {
	now := time.Now()
	end := now.Add(2 * min(c.access.NodeTimeout, ttl/4))
	if until.After(now) && until.Before(end) {
		return until
	}
	return end
}

func takenWords(state string) string {
	if state == stateSkip {
		return "passed over: the run before was still under way"
	}
	return ""
}

// refusal is the error of an attempt: what the tick's is, and the round's.
func (c *claimer) refusal(kind error, d due, out quorum.Outcome, why string) error {
	return &tickError{kind: kind, job: c.job, at: d.at, why: why,
		cause: c.access.Error("tick", c.job, out)}
}

// What is on record of a tick.
const (
	stateRun  = "run"
	stateSkip = "skip"
)

// proceed is for a claim that was won of a tick that nobody can have run: it commits, gets the run
// lock, and frees the claim lock. In this order, so that a claimer that dies before its commit
// leaves no run lock that would make the next one pass the tick over.
func (c *claimer) proceed(
	ctx context.Context, d due, out quorum.Outcome, ttl time.Duration,
) answer {
	defer out.Free()
	if err := ctx.Err(); err != nil {
		return answer{err: c.refusal(ErrTickUndecided, d,
			quorum.Outcome{Verdict: quorum.NoQuorum, Votes: out.Votes, Err: err}, "")}
	}
	if c.steady {
		ctx = context.WithoutCancel(ctx)
	}
	if committed, failed := c.commit(ctx, d, out, ttl, stateRun); !committed {
		return answer{err: failed}
	}
	lock, state, err := c.runLock(ctx)
	switch state {
	case stateRun:
		return answer{grant: &grant{at: d.at.UTC(), fencing: out.Fencing, lock: lock,
			votes: out.Votes}}
	case stateSkip:
		if committed, failed := c.commit(ctx, d, out, ttl, stateSkip); !committed {
			return answer{err: failed}
		}
		return answer{final: true, err: &tickError{kind: ErrTickTaken, job: c.job, at: d.at,
			why: "passed over: the run before is still under way", cause: err}}
	}
	c.keepUnstarted(out.Token, d) // on record, but nobody else will run it: ask again
	return answer{final: errors.Is(err, redlock.ErrClosed),
		err: &tickError{kind: ErrTickUndecided, job: c.job, at: d.at,
			why: "no run lock", cause: err}}
}

// runLock gets the lock that keeps runs apart, if they are to be. The state is what is to go on
// record then; it is "" if nothing can be, because err.
func (c *claimer) runLock(ctx context.Context) (lock *redlock.Lock, state string, err error) {
	if c.overlap == OverlapAllow {
		return nil, stateRun, nil
	}
	got, err := c.access.Lock(ctx, "ql:run:"+c.job, false)
	switch {
	case err == nil:
		return got.(*redlock.Lock), stateRun, nil
	case errors.Is(err, redlock.ErrHeld):
		return nil, stateSkip, err
	case !errors.Is(err, redlock.ErrNoQuorum): // ErrClosed, or ctx ended before the first message
		out := quorum.Outcome{Verdict: quorum.NoQuorum, Err: ctx.Err()}
		if errors.Is(err, redlock.ErrClosed) {
			out.Err = quorum.ErrStopped
		}
		return nil, "", c.access.Error("tick", c.job, out)
	}
	return nil, "", err
}

// commit puts the tick on record on all nodes that granted the claim, also those that did so too
// late to be needed for it.
func (c *claimer) commit(
	ctx context.Context, d due, out quorum.Outcome, ttl time.Duration, state string,
) (bool, error) {
	voters := &lateVoters{set: out.Voters}
	out.OnLate(voters.add)
	committed, errs, err := c.access.Engine.CommitTick(ctx, quorum.Commit{
		Name: "ql:job:" + c.job, Token: out.Token, Tick: d.ms(), Fencing: out.Fencing,
		State: state, Grace: d.grace, Life: d.life(), From: d.from(),
		Started: out.Started, TTL: ttl,
	}, voters.all())
	if committed {
		return true, nil
	}
	c.keepUnstarted(out.Token, d)
	return false, c.refusal(ErrTickUndecided, d,
		quorum.Outcome{Verdict: quorum.NoQuorum, Votes: out.Votes, Errs: errs, Err: err},
		"it could not be put on record")
}

// lateVoters are the nodes that granted a claim.
type lateVoters struct {
	mu  sync.Mutex // guards set
	set quorum.Set
}

func (v *lateVoters) add(news quorum.News) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.set |= news.Granted
}

func (v *lateVoters) all() quorum.Set {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.set
}

// keepUnstarted remembers an attempt of ours that did not start its tick, for as long as somebody
// here may ask for that.
func (c *claimer) keepUnstarted(token string, d due) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unstarted == nil {
		c.unstarted = make(map[string]time.Time)
	}
	for old, end := range c.unstarted {
		if end.Before(now) {
			delete(c.unstarted, old)
		}
	}
	c.unstarted[token] = now.Add(d.grace + time.Minute)
}

func (c *claimer) isUnstarted(token string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.unstarted[token]
	return ok
}
