package quorum

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/script"
)

// tickVotes are what an attempt at a claim knows of its tick.
type tickVotes struct {
	instant int64 // ms
	known   []Read
}

// readOf is what a node's answer to a claim says of the tick.
func (a *attempt) readOf(reply script.Reply, record script.Record, vote Vote, got answer) Read {
	if got.err != nil || reply.Letter == 0 {
		return Read{}
	}
	sinceMs := reply.Since.Milliseconds()
	return Read{
		Answered: true,
		Granted:  vote.Kind == Granted,
		// Since 0: the guard is off, and no rule of memory applies.
		Knows: (reply.Since == 0 || sinceMs < a.tick.instant) && record.Low < a.tick.instant,
		Owner: record.Mark.Owner,
		State: record.Mark.State,
		Time:  reply.Time.Milliseconds(),
	}
}

// needsAll reports whether a won claim should wait for the other nodes: it saw somebody's mark, and
// what they know may settle whose tick it is.
func (a *attempt) needsAll() bool {
	if a.tick == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	marked, pending := false, false
	for i := range a.ballots {
		marked = marked || a.tick.known[i].Owner != ""
		pending = pending || a.votes[i].Kind == Pending
	}
	return marked && pending
}

// reads are what all nodes know of the tick, and how long until enough of their clocks show its
// instant, where that is what a majority is missing. Called with a.mu held.
func (a *attempt) reads() (reads []Read, early time.Duration) {
	reads = slices.Clone(a.tick.known)
	missing := Majority(len(a.ballots))
	var waits []time.Duration
	for i := range a.ballots {
		b := &a.ballots[i]
		switch {
		case b.err == errEarly:
			left := time.Duration(a.tick.instant-a.tick.known[i].Time) * time.Millisecond
			waits = append(waits, max(left, time.Millisecond))
		case b.err == nil:
			missing--
		}
	}
	if missing <= 0 || missing > len(waits) {
		return reads, 0
	}
	slices.Sort(waits)
	return reads, waits[missing-1]
}

// A Commit is what goes on record of a tick.
type Commit struct {
	Name    string // of the claim lock
	Token   string // owner token of the claim
	Tick    int64  // ms
	Fencing uint64 // of the claim
	State   string // "run" or "skip"
	Grace   time.Duration
	Life    time.Duration // of the job's marks
	From    int64         // ms: everything after it without a mark counts as passed over

	Started clock.Reading // of the claim: its validity counts from here
	TTL     time.Duration // of the claim
}

// CommitTick puts a tick on record, where the claim lock is still ours. It is the tick's when a
// majority of all nodes has it. It blocks until that is decided, at most NodeTimeout, or until ctx
// ends. committed is false, too, when it is only not known: the tick must not be run then, and the
// claim's owner token is to be remembered as one that did not start it.
//
// Acknowledgements count only while the claim is valid: a node that granted it late was not read
// when it was decided, and once keys may have ended elsewhere a rival can have read, and marked,
// the others (model "tick/late grants").
func (e *Engine) CommitTick(ctx context.Context, c Commit, voters Set) (committed bool, errs []NodeErr, err error) {
	p := &poll{engine: e, question: askCommit}
	if err := p.ask(ctx, e.commitMessage(c), voters, 0, e.set.NodeTimeout); err != nil {
		return false, nil, err
	}
	tally, errs := p.sum()
	valid := e.Validity(c.TTL, c.Started) > 0
	return tally.Ours >= e.Quorum() && valid, errs, nil
}

// A Confirmation is what the nodes said of a lease at a tick.
type Confirmation struct {
	Verdict HoldVerdict
	TooNear bool // to the mark of the leader before: the tick may have been fired by it
	Tally   Tally
	Errs    []NodeErr

	Holder    string
	Remaining time.Duration
	Err       error // the context's error, if that ended it
}

// ConfirmLease asks the nodes whether a lease is still held, and moves the leader's mark to this
// reading of the clock, in ms. It blocks until that is decided, at most NodeTimeout, or until ctx
// ends.
func (e *Engine) ConfirmLease(
	ctx context.Context, h Hold, reading int64, guard time.Duration,
) Confirmation {
	p := &poll{engine: e, question: askConfirm}
	message := e.confirmMessage(h.Name, h.Token, reading, guard)
	var c Confirmation
	if c.Err = p.ask(ctx, message, h.Voters, h.Touched, e.messageTimeout(h.TTL)); c.Err != nil {
		return c
	}
	c.Tally, c.Errs = p.sum()
	c.Verdict = DecideHold(c.Tally, e.Quorum())
	c.TooNear = p.marked() > 0
	if c.Verdict != HoldKept {
		c.Holder, c.Remaining = p.rival()
	}
	return c
}
