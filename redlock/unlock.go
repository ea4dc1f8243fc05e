package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// A freeing is one release under way. Calls of Unlock that come meanwhile share it.
type freeing struct {
	lock       *Lock
	began      clock.Reading
	held       time.Duration // by then
	lostBefore bool          // the lock was lost by then
	again      bool          // an earlier release had got too few answers
	out        sync.WaitGroup
	over       bool  // guarded by Lock.mu
	err        error // readable once nothing is out
}

// Unlock frees the lock, on nodes where the key is ours; a rival's is never touched. From its
// first call on the lock is not usable, its context is done and nothing renews it. It blocks until
// a majority is known not to have the key (any more), at most 2 x NodeTimeout, whatever ctx says: a
// context that is done frees too, so that it can be deferred. Nodes that did not confirm are asked
// again in the background until the keys have ended.
//
// It may be called any number of times; after a success the result is nil. Errors: ErrNoQuorum:
// too few nodes confirmed; call it again, or leave the rest to the background. ErrNotHeld with
// ErrLost: the lock had been lost before. ErrNotHeld with ErrHeld: and another has it by now.
// ErrNotHeld alone: it never was held. ErrClosed: Close has dealt with it.
//
// With WithMinHold the keys are not freed before their time: they are shortened to it, and the lock
// ends by itself then.
//
// A key that is gone while the validity still runs counts as freed: a client that repeats commands
// may have done it unseen. So does, after a release of ours that got no answer, a rival's. A client
// of the user's that repeats commands by itself (MaxRetries of go-redis, other than -1) may have
// repeated a release unseen: then a rival that came in between makes it ErrNotHeld with ErrHeld.
func (l *Lock) Unlock(_ context.Context) error {
	if l == nil || l.client == nil {
		return &RoundError{Op: "unlock", kinds: []error{ErrNotHeld}}
	}
	l.mu.Lock()
	l.judge()
	switch l.state {
	case freed:
		l.mu.Unlock()
		return nil
	case closed, detached:
		defer l.mu.Unlock()
		return l.overError("unlock")
	case held:
		l.finish(unlocking, nil)
	}
	f := l.freeing
	if f == nil || f.over {
		f = l.release()
	}
	l.mu.Unlock()
	f.out.Wait() // bounded: every message is answered at its deadline
	return f.err
}

// release asks the nodes. Called with l.mu held, which it gives up in between.
func (l *Lock) release() *freeing {
	c := l.client
	f := &freeing{lock: l, began: c.clock.Now()}
	f.held = f.began.Since(l.won)
	f.out.Add(1)
	l.freeing = f
	keep := max(l.options.minHold-f.held, 0)
	if keep == 0 { // else it is to stay on all nodes
		l.recall()
	}
	hold := l.hold()
	hold.Keep = keep
	f.lostBefore, f.again = l.state == gone, l.asked
	l.asked = l.asked || !f.lostBefore
	l.mu.Unlock()
	defer l.mu.Lock()
	c.engine.Release(hold, l.stillUnsure, f.decided)
	return f
}

// decided takes in what became of the release.
func (f *freeing) decided(got quorum.Freeing) {
	l, c := f.lock, f.lock.client
	err := c.freeingError(l.name, got, f.lostBefore, f.again)
	l.mu.Lock()
	if round, ok := err.(*RoundError); ok && f.lostBefore {
		round.detail = l.overError("unlock").detail
	}
	f.over, f.err = true, err
	if err == nil {
		l.state = freed
	}
	l.mu.Unlock()
	c.cfg.Observer.round(Round{Op: "unlock", Name: l.name,
		Votes: got.Tally.Ours + got.Tally.Nobody, Nodes: c.engine.Nodes(),
		Took: c.clock.Now().Since(f.began), Err: err})
	if err == nil {
		c.cfg.Observer.freed(Event{Name: l.name, Token: l.fencing, Held: f.held})
	}
	f.out.Done()
}

// freeingError judges a release. lostBefore: the lock had been lost when it was sent. again: an
// earlier release of the same lock had got too few answers.
func (c *Client) freeingError(name string, got quorum.Freeing, lostBefore, again bool) error {
	t, need := got.Tally, c.engine.Quorum()
	free := t.Ours + t.Nobody + t.Twice
	if again {
		free += t.Rival - t.Twice
	}
	if !lostBefore && free >= need {
		return nil
	}
	e := c.roundError("unlock", name, got.Errs)
	e.Votes = free
	e.Holder, e.Remaining = quorum.Identity(got.Holder), got.Remaining
	switch {
	case t.Rival >= need:
		e.kinds = []error{ErrNotHeld, ErrHeld}
	case lostBefore:
		e.kinds = []error{ErrNotHeld, ErrLost}
	default:
		e.kinds = []error{ErrNoQuorum}
	}
	return e
}

// A closedHold is a lock that Close found held.
type closedHold struct {
	hold  quorum.Hold
	event Event // once it is freed
}

// endOnClose ends a lock whose client is closed, if it was still held, and says what to free.
func (l *Lock) endOnClose() (closedHold, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != held {
		return closedHold{}, false
	}
	l.finish(closed, &RoundError{Op: "hold", Name: l.name, kinds: []error{ErrClosed}})
	return closedHold{hold: l.hold(), event: Event{Name: l.name, Token: l.fencing,
		Held: l.client.clock.Now().Since(l.won)}}, true
}
