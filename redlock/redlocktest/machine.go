package redlocktest

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/redlock"
)

// A machine is where a client runs: the clocks of the system, the wall clock set forward or back.
type machine struct{ ahead atomic.Int64 }

// Now reads both clocks.
func (m *machine) Now() clock.Reading {
	now := clock.System{}.Now()
	now.Wall += time.Duration(m.ahead.Load())
	return now
}

// StepClock puts the wall clock of the client's machine forward by d, or back, and leaves its
// monotonic clock. Forward is what a process sees after its machine was suspended for d: a lock
// that ran out meanwhile is over at the first look at it, although no timer has fired.
func (q *Quorum) StepClock(c *redlock.Client, d time.Duration) {
	if p := q.process(c); p != nil {
		p.machine.ahead.Add(int64(d))
	}
}
