package schedule

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
)

const (
	// leastCorrection: a clock that is off by less is left alone, so that it does not jitter.
	leastCorrection = 20 * time.Millisecond
	// correctEvery is how often it is seen to that the nodes are asked for their time: a claim
	// does that, and where there was none since, it is done for nothing else. It is also what makes
	// a node whose memory is new begin to wait.
	correctEvery = time.Minute
)

// A tickClock is the clock that gocron goes by: the clock of the nodes, at their median, as far as
// it is known; this machine's wall clock until then. It runs on the monotonic clock, so that a
// wall clock that is stepped changes nothing, and its timers keep to it: one that would fire before
// its time is set again, and when the clock is corrected they all are.
//
// Time spent suspended is not on the monotonic clock. It shows in the wall clock, and then the
// nodes are asked.
type tickClock struct {
	clockwork.Clock // real; for what gocron does not use
	access          door.Access

	every time.Duration // correctEvery
	doubt chan struct{} // capacity 1: the nodes should be asked

	mu      sync.Mutex // guards below
	known   bool
	heard   clock.Reading // when a majority of the nodes last answered a claim; zero: never
	ahead   time.Duration // this clock minus our monotonic clock; if known
	own     time.Duration // our wall clock minus our monotonic clock, when that was set
	pending map[*clockTimer]struct{}
}

func newTickClock(access door.Access) *tickClock {
	return &tickClock{Clock: clockwork.NewRealClock(), access: access,
		every: correctEvery, doubt: make(chan struct{}, 1), pending: make(map[*clockTimer]struct{})}
}

// Now is the time by the nodes' clocks, without a monotonic reading.
func (c *tickClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now is Now. Called with c.mu held.
func (c *tickClock) now() time.Time {
	own := c.access.Clock.Now()
	if !c.known {
		return own.Time()
	}
	if off := own.Wall - own.Mono - c.own; off.Abs() > leastCorrection {
		select {
		case c.doubt <- struct{}{}:
		default:
		}
	}
	return time.Unix(0, int64(own.Mono+c.ahead))
}

// Since is for clockwork.Clock.
func (c *tickClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until is for clockwork.Clock.
func (c *tickClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// correct takes over what the nodes' answers say of the time, if it differs by enough to matter,
// and then sets all timers again: also those that stood still with a suspended machine. Otherwise it
// leaves them alone: it is called for each claim, and there may be thousands of each.
func (c *tickClock) correct() {
	offset, known := c.access.Engine.Offset()
	own := c.access.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !known {
		return
	}
	c.own = own.Wall - own.Mono
	ahead := c.own + offset
	if c.known && (ahead-c.ahead).Abs() <= leastCorrection {
		return
	}
	c.ahead, c.known = ahead, true
	now := c.now()
	for t := range c.pending {
		t.timer.Reset(t.at.Sub(now))
	}
}

// answered corrects the clock by the answers of a claim, which a majority of the nodes gave: they
// need not be asked for nothing but their time soon.
func (c *tickClock) answered() {
	c.correct()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = c.access.Clock.Now()
}

// wasHeard reports whether the nodes have answered a claim not long ago. Ticks a minute apart come
// at the moments at which the keeper looks, and the last one may be before it or just behind.
func (c *tickClock) wasHeard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.heard.IsZero() && c.access.Clock.Now().Since(c.heard) <= c.every+c.every/10
}

// ask asks the nodes for their time and corrects the clock. It blocks for NodeTimeout at the most.
func (c *tickClock) ask(ctx context.Context) {
	c.access.Engine.Survey(ctx)
	c.correct()
}

// keep corrects the clock until ctx ends.
func (c *tickClock) keep(ctx context.Context) {
	for {
		timer := time.NewTimer(c.every)
		select {
		case <-timer.C:
			if c.wasHeard() {
				continue
			}
		case <-c.doubt:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
		c.ask(ctx)
	}
}

// AfterFunc calls f in a goroutine of its own when this clock shows d more than now.
func (c *tickClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &clockTimer{clock: c, at: c.now().Add(d), f: f}
	c.pending[t] = struct{}{}
	t.timer = time.AfterFunc(d, t.fire)
	return t
}

// A clockTimer is a timer on a tickClock.
type clockTimer struct {
	clock *tickClock
	f     func()
	at    time.Time   // guarded by clock.mu, as is its being in clock.pending
	timer *time.Timer // set before clock.mu is first given up
}

// fire calls f, once, and not before its time.
func (t *clockTimer) fire() {
	c := t.clock
	c.mu.Lock()
	if _, ok := c.pending[t]; !ok {
		c.mu.Unlock()
		return
	}
	if left := t.at.Sub(c.now()); left > 0 {
		t.timer.Reset(left)
		c.mu.Unlock()
		return
	}
	delete(c.pending, t)
	c.mu.Unlock()
	t.f()
}

// Stop is for clockwork.Timer.
func (t *clockTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, ok := t.clock.pending[t]
	delete(t.clock.pending, t)
	t.timer.Stop()
	return ok
}

// Reset is for clockwork.Timer.
func (t *clockTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, ok := t.clock.pending[t]
	t.at = t.clock.now().Add(d)
	t.clock.pending[t] = struct{}{}
	t.timer.Reset(d)
	return ok
}

// Chan is for clockwork.Timer: a timer that calls a function has none.
func (t *clockTimer) Chan() <-chan time.Time { return nil }
