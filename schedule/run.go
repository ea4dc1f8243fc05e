package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// execute runs a granted tick and gives back what it held, however the run ends. It runs on a
// goroutine that is the run's own: run may end it.
func (j *job) execute(g *grant, done chan<- error) {
	s := j.scheduler
	tick := Tick{Job: j.name, At: g.at, Attempt: 1, Token: g.fencing, Manual: g.manual}
	event := TickEvent{Tick: tick, Votes: g.votes, Claim: g.took, Late: s.clock.Now().Sub(g.at)}
	ctx, cancel := s.runContext(g.lock)
	j.active.Add(1)
	began := time.Now()
	event.Err = errExited
	var stack []byte
	defer func() {
		if v := recover(); v != nil {
			event.Err, stack = fmt.Errorf("schedule: run panicked: %v", v), debug.Stack()
		}
		event.Took = time.Since(began)
		if err := lossOf(g.lock); err != nil && !errors.Is(event.Err, err) {
			event.Err = errors.Join(event.Err, err)
		}
		cancel()
		j.active.Add(-1)
		j.unlock(g.lock)
		j.ended(event, stack)
		s.running.leave()
		done <- event.Err
	}()
	started := event
	started.Err = nil
	s.observer.started(started)
	event.Err = j.run(ctx, tick)
}

// unlock frees the run lock. Where too few nodes answer it is freed in the background; that it was
// lost has been told.
func (j *job) unlock(lock *redlock.Lock) {
	if lock == nil {
		return
	}
	if err := lock.Unlock(context.Background()); errors.Is(err, redlock.ErrNoQuorum) {
		j.scheduler.log.Warn("schedule: run lock is freed in the background",
			"job", j.name, "error", err)
	}
}

// ended tells of a run.
func (j *job) ended(e TickEvent, stack []byte) {
	if e.Err != nil {
		attrs := []any{"job", j.name, "at", e.Tick.At, "token", e.Tick.Token, "error", e.Err}
		if stack != nil {
			attrs = append(attrs, "stack", string(stack))
		}
		j.scheduler.log.Error("schedule: run failed", attrs...)
	}
	j.scheduler.observer.ended(e)
}

// lossOf is why a run lock ended before it was freed; nil if it did not.
func lossOf(lock *redlock.Lock) error {
	if lock == nil {
		return nil
	}
	return context.Cause(lock.Context())
}

// runContext is what a run goes by: it ends when the run lock is lost, and at the end of Shutdown.
func (s *Scheduler) runContext(lock *redlock.Lock) (context.Context, context.CancelFunc) {
	if lock == nil {
		return context.WithCancel(s.runs)
	}
	held := lock.Context()
	ctx, cancel := context.WithCancelCause(held)
	stop := context.AfterFunc(s.runs, func() { cancel(context.Cause(s.runs)) })
	return &runContext{Context: ctx, held: held}, func() { stop(); cancel(nil) }
}

// A runContext ends with its run lock. Asked, it asks the lock, which judges the clocks: a process
// that was frozen for longer than the lock's validity sees the loss at its first look.
type runContext struct {
	context.Context
	held context.Context
}

// Err is for context.Context.
func (c *runContext) Err() error {
	if err := c.held.Err(); err != nil {
		return err
	}
	return c.Context.Err()
}

// Done is for context.Context.
func (c *runContext) Done() <-chan struct{} {
	_ = c.held.Err()
	return c.Context.Done()
}
