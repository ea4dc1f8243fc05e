package quorum

import (
	"context"
	"time"
)

const (
	probeFirst = 10 * time.Millisecond
	probeMost  = 500 * time.Millisecond // so that a node that is back votes within a second
	maxProbes  = 4                      // under way at once, where a client ignores deadlines
)

// A probe asks a failing node whether it is back: one empty batch at growing intervals, whether
// or not anybody wants the node at the moment, because keys may be waiting to be freed there.
type probe struct {
	timer *time.Timer
	gap   time.Duration
	out   int
}

// begin is called with l.mu held.
func (p *probe) begin(l *lane) {
	p.gap = probeFirst
	if p.timer == nil {
		p.timer = time.AfterFunc(p.gap, l.probeNode)
		return
	}
	p.timer.Reset(p.gap)
}

// askWhetherBack is for those who ask a node past its queue: what they find is to hold for everybody
// at once, and not only from the next probe on. It waits for the node at most NodeTimeout.
func (l *lane) askWhetherBack() {
	if l.isFailing() {
		l.probeNode()
	}
}

// probeNode asks a failing node once.
func (l *lane) probeNode() {
	l.mu.Lock()
	if l.closed || l.failing == nil {
		l.mu.Unlock()
		return
	}
	l.probe.gap = min(2*l.probe.gap, probeMost)
	l.probe.timer.Reset(l.probe.gap)
	if l.probe.out >= maxProbes {
		l.mu.Unlock()
		return
	}
	l.probe.out++
	l.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	err := l.exec(ctx, &Batch{})
	cancel()

	l.mu.Lock()
	back := err == nil && l.failing != nil && !l.closed
	if back {
		l.failing = nil
		l.facts.due = true // the address may lead to another server now
		l.guard.identity = ""
		l.probe.timer.Stop()
	} else if err != nil && l.failing != nil {
		l.failing = err
	}
	l.mu.Unlock()
	if back {
		l.trouble(l.index, nil)
		l.payDebts()
		l.meetAgain()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probe.out--
	l.checkIdle()
}

// meetAgain asks a node that is back for its memory. A new one begins to wait by that, and not only
// when somebody wants its vote.
func (l *lane) meetAgain() {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	_, _ = l.introduce(ctx) // where it fails, the next guarded batch asks again
}
