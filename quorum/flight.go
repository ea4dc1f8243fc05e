package quorum

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

const (
	// MaxBatch bounds what goes to a node at once, so that one flight does not grow without end.
	MaxBatch = 1024
	// maxFlights bounds how many batches are under way, the ones given up on included: a client
	// that ignores deadlines may keep those for long.
	maxFlights = 16
	maxStuck   = 2 * maxFlights
	// keepQueue bounds the room that a lane keeps for its next queue and its next flight.
	keepQueue = 512
)

// A flight is one batch under way.
type flight struct {
	batch    Batch
	requests []*request
	answers  []answer
	took     time.Time
	twice    bool // sent again after an error
}

// reuse empties the flight.
func (f *flight) reuse() {
	clear(f.requests)
	clear(f.batch.Calls)
	clear(f.answers)
	*f = flight{batch: Batch{Calls: f.batch.Calls[:0]}, requests: f.requests[:0],
		answers: f.answers[:0]}
}

// board reports whether the caller has to begin a goroutine for what is queued.
func (l *lane) board() bool {
	if l.boarding || len(l.queue) == 0 || !l.mayLeave() {
		return false
	}
	l.boarding = true
	return true
}

// takeOff makes a flight of what is queued, if one may leave now.
func (l *lane) takeOff(now time.Time) *flight {
	l.boarding = false
	if len(l.queue) == 0 || !l.mayLeave() {
		return nil
	}
	f := l.spare
	l.spare = nil
	if n := min(len(l.queue), MaxBatch); f == nil || cap(f.requests) < n {
		f = &flight{requests: make([]*request, 0, n), answers: make([]answer, 0, n)}
		f.batch.Calls = make([]Call, 0, n)
	}
	f.took, f.batch.Distinct = now, true
	taken := 0
	for taken < len(l.queue) && len(f.requests) < MaxBatch { // passOn may append to the queue
		r := l.queue[taken]
		taken++
		if r.answered { // withdrawn, or timed out in the queue
			l.passOn(r)
			continue
		}
		r.sent = true
		f.batch.Distinct = f.batch.Distinct && !r.apart
		f.requests = append(f.requests, r)
		f.batch.Calls = append(f.batch.Calls, Call{Command: r.command, Guarded: r.guarded})
	}
	l.queue = slices.Delete(l.queue, 0, taken)
	if len(l.queue) == 0 && cap(l.queue) > keepQueue {
		l.queue = nil
	}
	l.plan(now, len(f.requests))
	if len(f.requests) == 0 {
		l.spare = f
		return nil
	}
	l.flights = append(l.flights, f)
	if len(l.queue) > 0 && l.mayLeave() { // it sets the time of those who found no room
		l.wait(now)
	}
	l.wait(now.Add(l.timeout))
	return f
}

// mayLeave reports whether another flight may join those under way: always if there is none; as
// many as the node's distance is worth, some time apart; and one more when the newest has been out
// for unusually long, so that one lost reply does not hold up everything behind it.
func (l *lane) mayLeave() bool {
	n := len(l.flights)
	switch {
	case n == 0 && l.isBehind():
		return false // l.look will see to it
	case n == 0:
		return true
	case n >= maxStuck:
		return false
	}
	apart := l.pace.patience(l.timeout)
	if n < l.pace.flights() {
		apart = min(apart, l.pace.spacing())
	}
	newest := l.flights[n-1]
	if time.Since(newest.took) >= apart {
		return true
	}
	l.wait(newest.took.Add(apart))
	return false
}

// fly carries flights until nothing is queued. After one with many on board it lets those run that
// the answers have woken: then they have their next messages on the next flight, instead of behind
// it. With few it does not: in a process that is short of processors each turn costs time.
func (l *lane) fly() {
	var landed *flight
	for {
		l.mu.Lock()
		if landed != nil {
			l.spare = landed
		}
		f := l.takeOff(time.Now())
		l.checkIdle()
		l.mu.Unlock()
		if f == nil {
			return
		}
		l.review()
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
		err := l.vouched(ctx, &f.batch)
		if err != nil && ctx.Err() == nil {
			// A connection that died while it lay in the pool, mostly. All messages may be
			// repeated: the same token finds its own work done.
			f.twice = true
			err = l.vouched(ctx, &f.batch)
		}
		cancel()
		if !l.land(f, err) {
			return
		}
		if len(f.requests) >= crowd {
			runtime.Gosched()
		}
		// A node that failed may still have its hands on the batch.
		if landed = nil; err == nil && cap(f.requests) <= keepQueue {
			f.reuse()
			landed = f
		}
	}
}

// exec asks the node. Hooks and dialers in clients that users made may panic; what is behind a
// node must not end the process.
func (l *lane) exec(ctx context.Context, batch *Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the node's client panicked: %v", p)
		}
	}()
	for i := range batch.Calls {
		batch.Calls[i].Reply, batch.Calls[i].Err, batch.Calls[i].Void = "", nil, false
	}
	sent := l.engine.set.Clock.Now()
	if err = ownWords(l.node.Exec(ctx, batch)); err == nil {
		batch.stepped = l.sight(batch, sent, l.engine.set.Clock.Now()) || batch.stepped
	}
	return err
}

// ownWords keeps the text of a time-out of ours and takes its identity away: a caller who asks
// errors.Is(err, context.DeadlineExceeded) means the deadline of its own.
func ownWords(err error) error {
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w (%v)", errNodeTimeout, err)
	}
	return err
}

// land gives the flight's answers out, and reports whether the next one is the caller's to carry.
func (l *lane) land(f *flight, err error) bool {
	now := time.Now()
	f.answers = f.answers[:len(f.requests)]
	answers := f.answers
	l.mu.Lock()
	l.flights = slices.DeleteFunc(l.flights, func(other *flight) bool { return other == f })
	waited := false // for an answer of this flight
	for i, r := range f.requests {
		call := &f.batch.Calls[i]
		answers[i] = answer{reply: call.Reply, err: call.Err, void: call.Void, late: r.answered}
		if err != nil && (r.guarded || call.Reply == "" && call.Err == nil) {
			// The word of a guarded call counts only when all of its batch came back.
			answers[i] = answer{err: err, late: r.answered,
				void: r.guarded && call.Reply != ""}
		}
		answers[i].twice = f.twice
		waited = waited || !r.answered
		r.answered = true
		l.passOn(r)
	}
	var dropped []*request
	began := false
	switch {
	case err == nil:
		l.pace.note(now.Sub(f.took))
	case waited:
		dropped, began = l.fail(err)
	}
	goOn := !l.boarding
	l.boarding = true
	l.mu.Unlock()
	for i, r := range f.requests {
		r.to.answer(r, answers[i])
	}
	l.tell(dropped, answer{err: err, unsent: true})
	if began {
		l.trouble(l.index, err)
	}
	return goOn
}
