package redlock

import (
	"context"
	"errors"
)

// Do waits for the lock like Lock, calls fn while it is held, and frees it. fn's context ends with
// ctx and with the lock; fn should stop then. fn is not called when the lock could not be had: the
// error is then that of Lock. Otherwise it is fn's, joined with one that matches ErrLost if the
// lock was lost before fn returned (ErrClosed if the client was closed). A panic of fn frees the
// lock and goes on.
func (c *Client) Do(
	ctx context.Context, name string, fn func(context.Context, *Lock) error, opts ...LockOption,
) error {
	if fn == nil {
		return during("do", name, invalid("fn is nil"))
	}
	l, err := c.Lock(ctx, name, opts...)
	if err != nil {
		return err
	}
	defer func() {
		// An Unlock that found too few nodes goes on in the background: fn's work is done.
		if err := l.Unlock(ctx); errors.Is(err, ErrNoQuorum) {
			c.log.Warn("redlock: unlock goes on in the background", "name", name, "error", err)
		}
	}()
	l.mu.Lock()
	held := l.contextOver(ctx)
	l.mu.Unlock()
	err = fn(held, l)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge()
	if l.state == gone || l.state == closed {
		return errors.Join(err, l.overError("hold"))
	}
	return err
}
