package quorum

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

const (
	// crowd is how many messages on one flight are load.
	crowd = 8
	// calmFlights is after how many without there is none any more.
	calmFlights = 64
	// A lane behind leaves so many flights' times apart, within these bounds.
	behindTrips             = 16
	leastBehind, mostBehind = time.Millisecond, 25 * time.Millisecond
	// fasterBy is how many times as far as one behind a lane of the front may be.
	fasterBy = 4
)

// The front is a majority of the lanes. Under load the others, those behind, leave less often and so
// with more on board, and what was taken back before they leave is never sent: a lock that is freed
// within milliseconds costs the nodes behind nothing (ADR 0012). Without load all go at once.
//
// Which lanes are in front is chosen at random, so that the clients of a service share out the
// nodes, and changes when one of them gives no vote, stands still, or is far.
type front struct {
	lanes atomic.Uint64 // a Set
	load  atomic.Bool
	calm  atomic.Int32 // flights in a row without a crowd
}

// choose makes a front of quorum lanes of n.
func (f *front) choose(n, quorum int) {
	var lanes Set
	for place, i := range rand.Perm(n) {
		if place < quorum {
			lanes |= 1 << i
		}
	}
	f.lanes.Store(uint64(lanes))
}

// has reports whether lane i goes first.
func (f *front) has(i int) bool { return Set(f.lanes.Load()).Has(i) }

// note takes in how many messages went on a flight of lane i. Load is over when many in a row had
// few: where it comes and goes, the lanes behind would get what they have no time to send.
func (f *front) note(i, messages int) {
	switch {
	case messages == 0 || !f.has(i):
	case messages >= crowd:
		if !f.load.Load() {
			f.load.Store(true)
		}
		f.calm.Store(min(f.calm.Load(), 0))
	case f.load.Load() && f.calm.Add(1) >= calmFlights:
		f.load.Store(false)
	}
}

// swap puts one lane into the place of another, unless somebody has changed the front meanwhile.
func (f *front) swap(in, out int) {
	was := Set(f.lanes.Load())
	if was.Has(out) && !was.Has(in) {
		f.lanes.CompareAndSwap(uint64(was), uint64(was&^(1<<out)|1<<in))
	}
}

// AssumeLoad makes the engine take it that there is load, whatever comes; for tests.
func (e *Engine) AssumeLoad() {
	e.front.calm.Store(math.MinInt32)
	e.front.load.Store(true)
}

// isBehind reports whether the lane has to wait for its next departure. Called with l.mu held.
func (l *lane) isBehind() bool {
	return !l.departs.IsZero() && l.engine.front.load.Load() && !l.engine.front.has(l.index)
}

// plan sets when a lane behind that has just left leaves again. Called with l.mu held.
func (l *lane) plan(now time.Time, messages int) {
	f := &l.engine.front
	f.note(l.index, messages)
	l.departs = time.Time{}
	if len(l.queue) == 0 && !f.has(l.index) && f.load.Load() && l.pace.flights() == 1 {
		span := min(max(behindTrips*l.pace.mean, leastBehind), mostBehind, l.timeout/8)
		l.departs = now.Add(span)
		l.wait(l.departs)
	}
}

// hurry lets a lane behind leave early enough for r: when half of its time is over, and at once if it
// is about a tick, whose marks are to be on all nodes. Called with l.mu held.
func (l *lane) hurry(r *request) {
	if l.departs.IsZero() {
		return
	}
	if r.urgent {
		l.departs = time.Time{}
		return
	}
	switch r.command.Script {
	case script.Acquire, script.Release, script.Extend, script.Inspect:
		now := time.Now()
		if at := now.Add(l.engine.at(r.deadline).Sub(now) / 2); at.Before(l.departs) {
			l.departs = at
			l.wait(at)
		}
	default:
		l.departs = time.Time{}
	}
}

// review puts a lane behind, which has just left, into the front in the place of one that keeps
// callers waiting.
func (l *lane) review() {
	f := &l.engine.front
	if f.has(l.index) || l.mute.Load() {
		return
	}
	ours, _ := l.distance()
	for _, other := range l.engine.lanes {
		if !f.has(other.index) {
			continue
		}
		if theirs, answers := other.distance(); !answers || ours > 0 && theirs > fasterBy*ours {
			f.swap(l.index, other.index)
			return
		}
	}
}

// votes takes in whether node i gave its vote when it was last asked. One in front that gives none,
// because it fails, may not vote or answers errors, changes places with one that may: those who
// have asked wait for that one now.
func (e *Engine) votes(i int, given bool) {
	if l := e.lanes[i]; l.mute.Load() == given {
		l.mute.Store(!given)
	}
	if given || !e.front.has(i) {
		return
	}
	for _, other := range e.lanes {
		if !e.front.has(other.index) && !other.mute.Load() && !other.isFailing() {
			e.front.swap(other.index, i)
			other.leaveNow(nil)
			return
		}
	}
}

// needed are the messages of an undecided round of n nodes, if only nodes behind have not answered:
// one of the front has found the lock in other hands, or has failed. pending is the message that node
// i has not answered, or nil.
func (f *front) needed(n int, pending func(i int) *request) (needed []*request) {
	if !f.load.Load() {
		return nil
	}
	lanes, waits := Set(f.lanes.Load()), false
	for i := range n {
		if pending(i) != nil {
			if lanes.Has(i) {
				return nil
			}
			waits = true
		}
	}
	for i := 0; waits && i < n; i++ {
		if r := pending(i); r != nil {
			needed = append(needed, r)
		}
	}
	return needed
}

// fetch lets these messages go, and what they have to wait for.
func (e *Engine) fetch(requests []*request) {
	for _, r := range requests {
		e.lanes[r.node].leaveNow(r)
	}
}

// leaveNow lets the lane go, if it waits for its time, and r, if not nil, when its turn comes.
func (l *lane) leaveNow(r *request) {
	l.mu.Lock()
	if r != nil {
		r.urgent = true
	}
	l.departs = time.Time{}
	begin := l.board()
	l.mu.Unlock()
	if begin {
		l.engine.crew.carry(l.flying)
	}
}

// distance is how long a flight takes, and whether the node answers: not if it fails, or has been
// silent for unusually long.
func (l *lane) distance() (trip time.Duration, answers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answers = l.refusal() == nil
	if len(l.flights) > 0 && answers {
		answers = time.Since(l.flights[0].took) < max(l.pace.patience(l.timeout), mostBehind)
	}
	return l.pace.mean, answers
}
