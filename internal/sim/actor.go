package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// An actor is one goroutine of a client that does random things with locks.
type actor struct {
	*world
	client *client
	who    string
	rand   *rand.Rand
}

func (w *world) newActor(c *client, i int) *actor {
	return &actor{world: w, client: c, who: fmt.Sprintf("%s/%d", c.name, i),
		rand: w.Plan.rand(actorStream + uint64(i))}
}

func (a *actor) run() {
	time.Sleep(upTo(a.rand, a.NodeTimeout/4))
	for a.events.Load() < int64(a.Events) {
		switch a.rand.IntN(8) {
		case 0, 1, 2:
			a.try()
		case 3, 4, 5:
			a.wait()
		default:
			a.do()
		}
		time.Sleep(upTo(a.rand, pick(a.rand, a.NodeTimeout/10, a.NodeTimeout, a.TTL/2)))
	}
}

func (a *actor) name() string { return string(rune('a' + a.rand.IntN(a.Names))) }

// options are random ones, and the TTL that they come to.
func (a *actor) options() ([]redlock.LockOption, time.Duration) {
	var opts []redlock.LockOption
	ttl := a.TTL
	if a.rand.IntN(4) == 0 {
		ttl = max(a.TTL/time.Duration(1+a.rand.IntN(4)), 20*time.Millisecond) + 300*time.Microsecond
		ttl = min(ttl, a.TTL)
		opts = append(opts, redlock.WithTTL(ttl))
	}
	if a.rand.IntN(4) == 0 {
		opts = append(opts, redlock.WithoutRenewal())
	}
	if a.rand.IntN(5) == 0 {
		most := max(upTo(a.rand, 3*a.TTL), 20*time.Millisecond)
		ttl = min(ttl, most)
		opts = append(opts, redlock.WithMaxHold(most))
	}
	return opts, ttl
}

// context is one that ends: at its deadline, cancelled at some moment, or long after.
func (a *actor) context(longest time.Duration) (context.Context, context.CancelFunc) {
	switch a.rand.IntN(4) {
	case 0:
		ctx, cancel := context.WithCancel(context.Background())
		timer := time.AfterFunc(upTo(a.rand, a.NodeTimeout), cancel)
		return ctx, func() { timer.Stop(); cancel() }
	case 1:
		return context.WithTimeout(context.Background(), upTo(a.rand, longest))
	}
	return context.WithTimeout(context.Background(), longest)
}

func (a *actor) try() {
	opts, ttl := a.options()
	name := a.name()
	ctx, cancel := a.context(a.TTL)
	defer cancel()
	began := time.Now()
	l, err := a.client.TryLock(ctx, name, opts...)
	if took := time.Since(began); took > 2*a.NodeTimeout {
		a.watch.violation("%s: TryLock %q took %v, NodeTimeout is %v", a.who, name, took, a.NodeTimeout)
	}
	a.asked("try "+name, l, err, ttl)
	if err == nil {
		a.hold(l)
	}
}

func (a *actor) wait() {
	opts, ttl := a.options()
	name := a.name()
	ctx, cancel := a.context(2 * a.TTL)
	defer cancel()
	l, err := a.client.Lock(ctx, name, opts...)
	a.asked("lock "+name, l, err, ttl)
	if err == nil {
		a.hold(l)
	}
}

func (a *actor) do() {
	opts, ttl := a.options()
	name := a.name()
	ctx, cancel := a.context(2 * a.TTL)
	defer cancel()
	called := false
	err := a.client.Do(ctx, name, func(ctx context.Context, l *redlock.Lock) error {
		called = true
		a.asked("do "+name, l, nil, ttl)
		select {
		case <-time.After(upTo(a.rand, 2*a.TTL)):
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), redlock.ErrLost) && l.Remaining() > 0 {
				a.watch.violation("%s: %q told as lost and still valid", a.who, name)
			}
		}
		return nil
	}, opts...)
	if called {
		a.event(a.who, "done "+name, err)
	} else {
		a.asked("do "+name, nil, err, ttl)
	}
}

// asked takes in what a request for a lock came to.
func (a *actor) asked(what string, l *redlock.Lock, err error, ttl time.Duration) {
	switch {
	case err == nil:
		a.watch.won(l, a.who, ttl)
		a.counts.Wins.Add(1)
		what = fmt.Sprintf("%s: won, token %d", what, l.Token())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		a.counts.Ended.Add(1)
	case errors.Is(err, redlock.ErrHeld):
		a.counts.Held.Add(1)
	case errors.Is(err, redlock.ErrNoQuorum):
		a.counts.NoQuorum.Add(1)
	default:
		a.watch.violation("%s: %s: an error of no known kind: %v", a.who, what, err)
	}
	a.event(a.who, what, err)
}

// hold does things with a lock until it is freed.
func (a *actor) hold(l *redlock.Lock) {
	for range a.rand.IntN(6) {
		switch a.rand.IntN(3) {
		case 0:
			a.extend(l)
		case 1:
			time.Sleep(upTo(a.rand, a.TTL/3))
		default: // until it is lost, or as one that is stalled and does not look at it
			time.Sleep(upTo(a.rand, 2*a.TTL))
		}
	}
	if a.rand.IntN(10) == 0 {
		return // its end is up to Close, or it is renewed as long as the schedule runs
	}
	for range 1 + a.rand.IntN(2) {
		a.unlock(l)
	}
}

func (a *actor) extend(l *redlock.Lock) {
	ctx, cancel := a.context(a.NodeTimeout)
	defer cancel()
	err := l.Extend(ctx)
	if err == nil {
		a.counts.Extends.Add(1)
		if left := l.Remaining(); left <= 0 {
			a.watch.violation("%s: extended %q, and its validity is over", a.who, l.Name())
		}
	}
	a.event(a.who, "extend "+l.Name(), err)
}

func (a *actor) unlock(l *redlock.Lock) {
	ctx, cancel := a.context(a.NodeTimeout)
	defer cancel()
	began := time.Now()
	err := l.Unlock(ctx)
	if took := time.Since(began); took > 2*a.NodeTimeout {
		a.watch.violation("%s: Unlock %q took %v, NodeTimeout is %v",
			a.who, l.Name(), took, a.NodeTimeout)
	}
	if err == nil {
		a.counts.Unlocks.Add(1)
	}
	a.event(a.who, "unlock "+l.Name(), err)
}
