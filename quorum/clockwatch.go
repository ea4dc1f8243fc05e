package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/script"
)

// The clock watch. Keys live by their node's wall clock, so a node whose clock steps has forgotten
// locks, or keeps them too long. Replies carry the node's time; a step against our monotonic clock
// takes the node's vote for MaxTTL, for all clients, through ql:node. But a step that most nodes
// seem to have made together is that of our own clock, which stands still while a machine is
// suspended: it is charged to us.

var errClockStepped = errors.New("its clock was stepped")

// sight takes in the first reply of a batch that carries the node's time, and reports whether the
// node's clock has stepped.
func (l *lane) sight(batch *Batch, sent, received clock.Reading) (stepped bool) {
	var nodeTime time.Duration
	for i := range batch.Calls {
		c := &batch.Calls[i]
		if c.Err == nil && c.Command.Script.Timed {
			nodeTime = script.NodeTime(c.Reply)
			break
		}
	}
	if nodeTime == 0 {
		return false
	}
	limit := stepLimit(l.engine.set.MaxTTL, l.engine.set.DriftFactor)
	see := sighting{node: nodeTime, sent: sent.Mono, received: received.Mono,
		own: received.Wall - received.Mono}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.skew
	now, step := before.next(see, limit)
	l.skew = now
	if !l.engine.set.Guard {
		return false // no rule of memory applies; the offset is known all the same
	}
	if step == 0 {
		return l.distrust(received) > 0
	}
	l.stepped, l.steppedAt, l.stepAfter = step, received, before.at
	go l.engine.weigh(l, see.own-before.own, limit)
	return true
}

// distrust is for how long yet the node gives no vote because its clock has stepped. Called with
// l.mu held.
func (l *lane) distrust(now clock.Reading) time.Duration {
	if l.stepped == 0 {
		return 0
	}
	return max(0, l.engine.largest.Load().d-now.Since(l.steppedAt))
}

// stepError is why a node whose clock was stepped gives no vote.
func (l *lane) stepError() error {
	now := l.engine.set.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return &WaitError{Left: l.distrust(now), Stepped: true}
}

// weighMost is how long a step is nobody's while nodes that could have made it together do not
// answer: after a suspension the connections come back one by one, a node that failed after a
// probe at the latest.
const weighMost = 4 * probeMost

// weigh decides whose clock has stepped, the node's or ours. It asks all other nodes for their
// time first: what they knew before the step says nothing. Our wall clock has moved by own against
// the monotonic one; that says nothing either, as a node may run on this machine.
func (e *Engine) weigh(first *lane, own, limit time.Duration) {
	select { // one at a time: several nodes may find the same step at once
	case e.weighing <- struct{}{}:
		defer func() { <-e.weighing }()
	case <-e.stopped:
		return
	}
	for began := time.Now(); ; {
		step, at := first.lastStep()
		if step == 0 {
			return // charged to us meanwhile
		}
		if e.isOurs(first, limit) {
			return
		}
		e.askTimes(first)
		same, silent := e.stepsLike(step, at, limit)
		switch {
		case same >= e.Quorum():
			e.chargeUs(step, own, limit)
			return
		case same+silent < e.Quorum() || time.Since(began) >= weighMost:
			e.chargeNode(first, step)
			return
		}
		select {
		case <-time.After(e.set.NodeTimeout):
		case <-e.stopped:
			return
		}
	}
}

// isOurs reports whether a step is one that was charged to us before this node was heard of again,
// and clears it then. Called with e.weighing held, which guards e.ourStep.
func (e *Engine) isOurs(l *lane, limit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ours := e.ourStep != 0 && l.stepAfter < e.ourStepAt &&
		together([]time.Duration{l.stepped}, e.ourStep, limit) == 1
	if ours {
		l.stepped = 0
	}
	return ours
}

// stepsLike counts the nodes which have made a step like this one not long ago, and of the others
// those that have not answered since at and could have.
func (e *Engine) stepsLike(step time.Duration, at clock.Reading, limit time.Duration) (
	same, silent int,
) {
	now := e.set.Clock.Now()
	for _, l := range e.lanes {
		l.mu.Lock()
		switch {
		case l.distrust(now) > 0 && together([]time.Duration{l.stepped}, step, limit) == 1:
			same++
		case l.skew.known && l.skew.at < at.Mono:
			silent++
		}
		l.mu.Unlock()
	}
	return same, silent
}

// askTimes makes a sighting of all nodes but one. It waits at most NodeTimeout.
func (e *Engine) askTimes(but *lane) {
	var asked sync.WaitGroup
	for _, l := range e.lanes {
		if l != but {
			asked.Go(l.askTime)
		}
	}
	done := make(chan struct{})
	go func() { asked.Wait(); close(done) }()
	timer := time.NewTimer(e.set.NodeTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// chargeNode tells the others, through the node, that its clock has stepped.
func (e *Engine) chargeNode(l *lane, step time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), e.set.NodeTimeout)
	defer cancel()
	if _, off := l.expected(); !off {
		_, _ = l.admit(ctx, "renew") // where it fails, this client's own memory has to do
	}
	e.trouble(l.index, fmt.Errorf("%w by %v; its vote is taken for %v",
		errClockStepped, step.Round(time.Millisecond), e.largest.Load().d))
}

func (l *lane) lastStep() (step time.Duration, at clock.Reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stepped, l.steppedAt
}

// askTime makes one sighting, by an extend of nothing.
func (l *lane) askTime() {
	done := make(chan struct{})
	l.submit(&request{command: l.engine.extendMessage("ql:time", "", time.Millisecond, false),
		to: doneReceiver(done), node: int16(l.index),
		deadline: l.engine.moment(time.Now().Add(l.timeout))})
	<-done
}

type doneReceiver chan struct{}

func (d doneReceiver) answer(_ *request, a answer) {
	if !a.late {
		close(d)
	}
}

// chargeUs is for a step that most nodes seem to have made: our clocks stood still for that long,
// and nobody's vote is taken. Forward, every validity is that much shorter, less what our wall
// clock has made up for: that is judged, too.
func (e *Engine) chargeUs(step, own, limit time.Duration) {
	e.ourStep, e.ourStepAt = step, e.set.Clock.Now().Mono
	for _, l := range e.lanes {
		l.mu.Lock()
		if together([]time.Duration{l.stepped}, step, limit) == 1 {
			l.stepped = 0
		}
		l.mu.Unlock()
	}
	if unseen := step - own; unseen.Abs() > limit && e.set.OwnStep != nil {
		e.set.OwnStep(unseen)
	}
}

// Offset is how far this machine's wall clock is behind the nodes' clocks at the median: the
// quorum clock shows the wall clock plus the offset. It is not known before a majority of the
// nodes has answered once.
func (e *Engine) Offset() (offset time.Duration, known bool) {
	own := e.set.Clock.Now()
	var all []time.Duration
	for _, l := range e.lanes {
		l.mu.Lock()
		if l.skew.known {
			all = append(all, l.skew.middle()-(own.Wall-own.Mono))
		}
		l.mu.Unlock()
	}
	if len(all) < e.Quorum() {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}

// AskTime asks every node for its time, so that Offset is known and recent. It blocks until all
// have answered, at most NodeTimeout, or until ctx ends.
func (e *Engine) AskTime(ctx context.Context) {
	var asked sync.WaitGroup
	for _, l := range e.lanes {
		asked.Go(l.askTime)
	}
	done := make(chan struct{})
	go func() { asked.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	case <-e.stopped:
	}
}
