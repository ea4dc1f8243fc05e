package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// campaignPause is the pause after a campaign that ended with an error: Lock itself waits for
// nodes that are down, so this is for what it does not wait for.
const campaignPause = time.Second

// campaign waits for the lease, keeps it, and begins again when it is gone, until ctx or the
// client ends. It is the only one that writes e.term.
func (e *Elector) campaign(ctx context.Context) {
	defer close(e.ended)
	for {
		got, err := e.access.Lock(ctx, e.lease, true, redlock.WithTTL(e.ttl))
		switch {
		case ctx.Err() != nil || errors.Is(err, redlock.ErrClosed):
			if err == nil {
				_ = got.(*redlock.Lock).Unlock(ctx)
			}
			return
		case err != nil:
			e.access.Logger.Warn("schedule: campaign", "name", e.name, "error", err)
			if !e.rest(ctx, campaignPause) {
				return
			}
			continue
		}
		if !e.lead(ctx, got.(*redlock.Lock)) {
			return
		}
	}
}

// A term is one time of leading.
type term struct {
	lock    *redlock.Lock
	resigns chan chan error
	over    chan struct{} // closed at its end
}

// lead keeps the lease until it is lost or given up. It returns false when the campaign is over.
func (e *Elector) lead(ctx context.Context, lock *redlock.Lock) bool {
	t := &term{lock: lock, resigns: make(chan chan error), over: make(chan struct{})}
	defer close(t.over)
	e.change(t)
	select {
	case <-lock.Context().Done():
		e.change(nil)
		return !errors.Is(context.Cause(lock.Context()), redlock.ErrClosed)
	case done := <-t.resigns:
		e.change(nil)
		done <- lock.Unlock(ctx)
		return e.rest(ctx, resignPause)
	case <-ctx.Done():
		e.change(nil)
		if err := lock.Unlock(ctx); errors.Is(err, redlock.ErrNoQuorum) {
			e.access.Logger.Warn("schedule: lease is freed in the background",
				"name", e.name, "error", err)
		}
		return false
	}
}

// change sets the answer of IsLeader, and only then tells of it.
func (e *Elector) change(t *term) {
	e.mu.Lock()
	e.term = t
	e.mu.Unlock()
	if e.onChange != nil {
		e.teller.Tell(func() { e.onChange(t != nil) })
	}
}

// rest waits for d and reports whether the campaign goes on.
func (e *Elector) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-e.access.Done:
	}
	return false
}
