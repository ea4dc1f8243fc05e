package redlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// A Lock is one hold of a name, from the call that won it until it is freed or lost. Its methods
// may be called concurrently. A Lock that no call returned holds nothing: all its methods can be
// called and say so.
type Lock struct {
	client  *Client
	name    string
	token   string // owner token: proves to the nodes that a key is ours
	fencing uint64
	options holdOptions
	base    context.Context // of the call: values only
	won     clock.Reading   // when the round that won it began
	keyLife time.Duration   // the longest that a key may still live: the TTL, or a handle's if longer

	index int           // in keeper.locks, -1: not there; guarded by keeper.mu
	due   time.Duration // when the keeper looks at it; guarded by keeper.mu

	mu        sync.Mutex // guards all below
	state     state
	cause     error         // why it ended, for contexts; see ended
	until     clock.Reading // end of the validity
	touched   quorum.Set    // nodes that may have the key
	unsure    quorum.Set    // of these, where an unanswered message may still bring it
	voters    quorum.Set    // nodes whose word that they have the key counts
	barred    quorum.Set    // nodes that must not be planted at present
	planting  quorum.Set    // nodes that a plant is on its way to
	rest      quorum.Rest   // of the round that won it, until that is over or the lock is prolonged
	renewAt   clock.Reading // when the next renewal is due
	renewing  bool
	refreshed clock.Reading // when the register's life was last prolonged
	lost      chan struct{} // made when asked for
	context   *lockContext  // made when asked for
	contexts  []context.CancelCauseFunc
	freeing   *freeing // the release under way, or the last one
	asked     bool     // a release was sent while the lock was valid
}

// state is where a Lock is in its life.
type state uint8

const (
	neverHeld state = iota
	held
	unlocking // Unlock began: not usable any more, perhaps not freed yet
	freed
	gone     // lost
	closed   // by Client.Close
	detached // by Detach: somebody else goes on
)

// newLock makes a Lock of a won attempt.
func (c *Client) newLock(
	ctx context.Context, name string, o lockOptions, out quorum.Outcome,
) (*Lock, error) {
	l, err := c.keep(ctx, name, o, out)
	if err == nil {
		out.OnLate(l.hear)
	}
	return l, err
}

// keep begins to hold what the nodes have granted, if its validity is not over by now.
func (c *Client) keep(
	ctx context.Context, name string, o lockOptions, out quorum.Outcome,
) (*Lock, error) {
	l := &Lock{
		client: c, name: name, token: out.Token, fencing: out.Fencing, options: o.holdOptions, base: ctx,
		won: out.Started, index: -1, state: held,
		until: c.engine.ValidUntil(o.ttl, out.Started), renewAt: out.Started.Add(o.renewEvery),
		touched: out.Touched, unsure: out.Unsure, voters: out.Voters, refreshed: out.Started,
		keyLife: max(o.ttl, o.keyLife),
	}
	if out.Unsure != 0 {
		l.rest = out.Rest()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var err *RoundError
	switch now := c.clock.Now(); {
	case now.Until(l.until) <= 0 || c.misdated(l.won):
		err = c.roundError("lock", name, out.Errs)
		err.Votes, err.kinds = out.Votes, []error{ErrNoQuorum}
		err.detail = fmt.Sprintf("the round took longer than the validity of a TTL of %v", o.ttl)
	case !c.keeper.schedule(l, l.nextLook()):
		err = &RoundError{Op: "lock", Name: name, kinds: []error{ErrClosed}}
	default:
		return l, nil
	}
	l.state = gone
	c.engine.Release(l.hold(), nil, nil)
	return nil, err
}

// ends is when WithMaxHold ends it, if there is one: it is never valid after that.
func (l *Lock) ends() (clock.Reading, bool) {
	return l.won.Add(l.options.maxHold), l.options.maxHold > 0
}

// hold is the lock as the engine knows it. Called with l.mu held.
func (l *Lock) hold() quorum.Hold {
	return quorum.Hold{Name: l.name, Token: l.token, TTL: l.keyLife,
		Touched: l.touched, Unsure: l.unsure | l.planting, Voters: l.voters}
}

// hear takes in what nodes said after the lock was won, and to plants.
func (l *Lock) hear(news quorum.News) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.voters |= news.Granted
	l.planting &^= news.Landed
	l.unsure = (l.unsure | news.Landed) &^ news.Sure
	l.barred = l.barred&^news.Freed | news.Barred
	if l.unsure == 0 {
		l.rest = quorum.Rest{}
	}
}

// recall takes back what was not sent yet. Called with l.mu held, which it gives up in between.
func (l *Lock) recall() {
	rest := l.rest
	l.rest = quorum.Rest{}
	l.mu.Unlock()
	recalled := rest.Recall()
	l.mu.Lock()
	l.touched, l.unsure = l.touched&^recalled, l.unsure&^recalled
}

// stillUnsure are the nodes where an unanswered message may still bring the key.
func (l *Lock) stillUnsure() quorum.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsure | l.planting
}

// Name is the lock's name.
func (l *Lock) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// Token is the fencing token: every later holder of the same name has a larger one. Give it to the
// resource that the lock protects, where that can refuse smaller ones than it has seen. It fits 53
// bits.
func (l *Lock) Token() uint64 {
	if l == nil {
		return 0
	}
	return l.fencing
}

// Until is the end of the validity, already reduced by the drift allowance, on this machine's wall
// clock. Renewals move it. The zero time: never held.
func (l *Lock) Until() time.Time {
	if l == nil || l.client == nil {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Time()
}

// Remaining is how much of the validity is left. It is judged when it returns, on the monotonic
// and the wall clock, whichever leaves less, so that a process which was frozen or suspended sees
// the loss at its first look. It is 0 or less when the lock is over: lost, freed or never held.
func (l *Lock) Remaining() time.Duration {
	if l == nil || l.client == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge()
	left := l.client.clock.Now().Until(l.until)
	if l.state != held {
		return min(left, 0)
	}
	return left
}

// Lost is closed when the lock is lost: its validity ended, a majority of its keys was gone, or
// WithMaxHold was reached. Unlock and Close do not close it.
func (l *Lock) Lost() <-chan struct{} {
	if l == nil || l.client == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = make(chan struct{})
		if l.state == gone {
			close(l.lost)
		}
	}
	l.judge()
	return l.lost
}

// judge ends the lock if its validity is over. Called with l.mu held.
func (l *Lock) judge() {
	if l.state != held {
		return
	}
	if now := l.client.clock.Now(); now.Until(l.until) <= 0 {
		err := &RoundError{Op: "hold", Name: l.name, kinds: []error{ErrLost}}
		if ends, ok := l.ends(); ok && l.until.Add(time.Millisecond).Until(ends) <= l.drift() {
			err.detail = fmt.Sprintf("it was held for its WithMaxHold of %v", l.options.maxHold)
			l.lose(err, false)
			return
		}
		err.detail = "its validity is over"
		l.lose(err, true)
	}
}

// shorten takes d off the validity, for time that our clocks did not see.
func (l *Lock) shorten(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != held {
		return
	}
	l.until, l.renewAt = l.until.Add(-d), l.renewAt.Add(-d)
	l.judge()
	if l.state == held {
		l.client.keeper.schedule(l, l.nextLook())
	}
}

// drift is the allowance that l.until is reduced by. Called with l.mu held.
func (l *Lock) drift() time.Duration {
	return quorum.Drift(l.options.ttl, l.client.cfg.DriftFactor) + time.Millisecond
}

// lose ends the lock as lost. First everything that could still take it for held learns of it;
// then it is told and, if release says so, what is left on the nodes is freed. At the end of
// WithMaxHold the keys stay until they end by themselves: whoever held the lock may need a moment
// to stop. Called with l.mu held.
func (l *Lock) lose(err *RoundError, release bool) {
	l.finish(gone, err)
	if l.lost != nil {
		close(l.lost)
	}
	c, name, fencing := l.client, l.name, l.fencing
	hold := l.hold()
	span := c.clock.Now().Since(l.won)
	c.teller.Tell(func() {
		c.log.Warn("redlock: lock lost", "name", name, "token", fencing, "cause", err)
		c.cfg.Observer.lost(Event{Name: name, Token: fencing, Held: span, Err: err})
	})
	if release {
		c.engine.Release(hold, nil, nil)
	}
}

// finish ends the hold and all its contexts. Called with l.mu held.
func (l *Lock) finish(to state, cause error) {
	l.state, l.cause = to, cause
	l.client.keeper.remove(l)
	for _, cancel := range l.contexts {
		cancel(l.ended())
	}
	l.contexts = nil
}

// ended is why the lock is over, for contexts. That of an Unlock is made when somebody asks: mostly
// nobody does. Called with l.mu held.
func (l *Lock) ended() error {
	if l.cause == nil {
		l.cause = &RoundError{Op: "hold", Name: l.name, kinds: []error{ErrNotHeld},
			detail: "it was unlocked"}
	}
	return l.cause
}
