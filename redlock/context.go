package redlock

import (
	"context"
	"fmt"
	"time"
)

// A lockContext ends with its lock. Asked, it judges the clocks, so that a process that was frozen
// for longer than the validity gets no "still valid" from it, whatever its timers had time to do.
type lockContext struct {
	context.Context
	lock *Lock
}

func (c *lockContext) look() {
	c.lock.mu.Lock()
	defer c.lock.mu.Unlock()
	c.lock.judge()
}

// Err judges the clocks first.
func (c *lockContext) Err() error {
	c.look()
	return c.Context.Err()
}

// Done judges the clocks first.
func (c *lockContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// Deadline is none of its own: renewals move the end.
func (c *lockContext) Deadline() (time.Time, bool) { return c.Context.Deadline() }

func (c *lockContext) String() string { return fmt.Sprintf("context of lock %q", c.lock.name) }

// Context is a context for the work that the lock protects. It has the values of the call's
// context but not its end. It is done when the lock is lost, freed, or the client closed;
// context.Cause then matches ErrLost, ErrNotHeld or ErrClosed. Err and Done judge the clocks when
// they are asked.
func (l *Lock) Context() context.Context {
	if l == nil || l.client == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(ErrNotHeld)
		return ctx
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.context == nil {
		l.context = l.contextOver(context.WithoutCancel(l.base))
	}
	l.judge()
	return l.context
}

// contextOver makes a context that ends with parent and with the lock. Called with l.mu held.
func (l *Lock) contextOver(parent context.Context) *lockContext {
	ctx, cancel := context.WithCancelCause(parent)
	if l.state == held {
		l.contexts = append(l.contexts, cancel)
	} else {
		cancel(l.ended())
	}
	return &lockContext{Context: ctx, lock: l}
}
