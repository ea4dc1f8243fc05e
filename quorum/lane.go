package quorum

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
)

// Why a message got no answer. They do not wrap context errors: a caller who asks whether its own
// deadline passed must not be told of ours.
var (
	errNodeTimeout = errors.New("no answer in time")
	errUnsent      = errors.New("not sent in time: the node does not keep up")
	errLaneClosed  = errors.New("client closed")
)

const (
	// maxBatch bounds what goes to a node at once, so that one flight does not grow without end.
	maxBatch = 1024
	// maxFlights bounds how many batches are under way, the ones given up on included: a client
	// that ignores deadlines may keep those for long.
	maxFlights = 16
	maxStuck   = 2 * maxFlights
	// crowd is how many messages on a flight make it worth waiting for those who will have more.
	crowd = 8
	// keepQueue bounds the room for a queue that an idle lane keeps.
	keepQueue = 64
)

// A request is one message to one node, from submit to its answer.
type request struct {
	command  *Command
	to       receiver
	node     int // the node's index
	deadline time.Time
	guarded  bool // acquire or plant: counts only if the node's memory is the expected one
	apart    bool // in no order with others about the key

	// Guarded by lane.mu.
	sent     bool     // the node may have seen it
	answered bool     // to was told
	next     *request // the following message about the same key, which waits for this one
	tail     *request // on the one that others wait for: the last of them
}

// A receiver is told the answer of each of its requests exactly once; and once more, with late
// set, if an answer still comes after the deadline. It runs on the lane's goroutines, or on the
// submitter's before submit returns, and must not block.
type receiver interface {
	answer(r *request, a answer)
}

// An answer is what became of a request.
type answer struct {
	reply  string
	err    error
	unsent bool // the node surely never saw the request
	void   bool // the node may have done it, and its word counts for nothing
	late   bool
	twice  bool // it was sent once before, and that was not answered: it may still arrive
}

// A lane is the way to one node. It sends what has queued up while the last batch was under way
// as the next batch (natural batching): with many callers they share the cost of a round trip,
// and a single one waits for nobody.
//
// A node that does not answer never collects a queue. Each request is answered with an error at
// its deadline, sent or not; and from the first failure on nothing is sent but a probe, until one
// is answered. A lane without work has no goroutine.
type lane struct {
	engine  *Engine
	node    Node
	index   int
	timeout time.Duration // of a flight
	trouble func(node int, err error)

	mu        sync.Mutex // guards all below
	closed    bool
	queue     []*request          // may be sent now
	busy      map[string]*request // by key: the message that the others about it wait for
	flights   []*flight
	boarding  bool    // a goroutine is about to take off, with what is queued by then
	spare     *flight // to be used again
	failing   error   // nil: the node answers
	pace      pace
	watch     *time.Timer // looks after deadlines; nil until first needed
	watchAt   time.Time   // when it fires; zero: not set
	probe     probe
	guard     guard
	skew      skew
	stepped   time.Duration // the last step of the node's clock that was charged to it
	steppedAt clock.Reading
	stepAfter time.Duration // the sighting before it, on our monotonic clock
	facts     facts
	debts     []debt
	debtWait  time.Duration
	debtTry   *time.Timer
	drained   chan struct{} // after drain: closed when no message is queued or under way
	idle      chan struct{} // after close: closed when nothing is under way
}

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

func newLane(engine *Engine, node Node, index int, trouble func(int, error)) *lane {
	return &lane{engine: engine, node: node, index: index, timeout: engine.set.NodeTimeout,
		trouble: trouble, busy: make(map[string]*request), guard: guard{off: !engine.set.Guard}}
}

// submit hands r over. It does not block; r.to is told the answer by r.deadline at the latest.
func (l *lane) submit(r *request) {
	l.mu.Lock()
	if err := l.refusal(); err != nil {
		r.answered = true
		l.mu.Unlock()
		r.to.answer(r, answer{err: err, unsent: true})
		return
	}
	l.wait(r.deadline)
	if !r.apart {
		if first := l.busy[r.command.Key]; first != nil {
			first.tail.next, first.tail = r, r
			l.mu.Unlock()
			return
		}
		r.tail = r
		l.busy[r.command.Key] = r
	}
	l.queue = append(l.queue, r)
	begin := l.board(time.Now())
	l.mu.Unlock()
	if begin {
		go l.fly()
	}
}

// refusal says why nothing is sent at present, if so.
func (l *lane) refusal() error {
	if l.closed {
		return errLaneClosed
	}
	return l.failing
}

// isFailing reports whether a message would not be sent at present.
func (l *lane) isFailing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal() != nil
}

// withdraw takes r back if it was not sent, and reports whether it surely never will be. A
// withdrawn request gets no answer.
func (l *lane) withdraw(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.sent {
		return false
	}
	r.answered = true // skipped when its turn comes
	return true
}

// board reports whether the caller has to begin a goroutine for what is queued.
func (l *lane) board(now time.Time) bool {
	if l.boarding || len(l.queue) == 0 || !l.mayLeave(now) {
		return false
	}
	l.boarding = true
	return true
}

// takeOff makes a flight of what is queued, if one may leave now.
func (l *lane) takeOff(now time.Time) *flight {
	l.boarding = false
	if len(l.queue) == 0 || !l.mayLeave(now) {
		return nil
	}
	f := l.spare
	l.spare = nil
	if n := min(len(l.queue), maxBatch); f == nil || cap(f.requests) < n {
		f = &flight{requests: make([]*request, 0, n), answers: make([]answer, 0, n)}
		f.batch.Calls = make([]Call, 0, n)
	}
	f.took = now
	taken := 0
	for taken < len(l.queue) && len(f.requests) < maxBatch { // passOn may append to the queue
		r := l.queue[taken]
		taken++
		if r.answered { // withdrawn, or timed out in the queue
			l.passOn(r)
			continue
		}
		r.sent = true
		f.requests = append(f.requests, r)
		f.batch.Calls = append(f.batch.Calls, Call{Command: r.command, Guarded: r.guarded})
	}
	l.queue = slices.Delete(l.queue, 0, taken)
	if len(l.queue) > 0 {
		l.wait(now.Add(l.pace.patience(l.timeout)))
	} else if cap(l.queue) > keepQueue {
		l.queue = nil
	}
	if len(f.requests) == 0 {
		l.spare = f
		return nil
	}
	l.flights = append(l.flights, f)
	l.wait(now.Add(l.timeout))
	return f
}

// mayLeave reports whether another flight may join those under way: always if there is none; as
// many as the node's distance is worth; and one more when the newest has been out for unusually
// long, so that one lost reply does not hold up everything behind it.
func (l *lane) mayLeave(now time.Time) bool {
	n := len(l.flights)
	switch {
	case n == 0 || n < l.pace.flights():
		return true
	case n >= maxStuck:
		return false
	}
	newest := l.flights[n-1]
	patience := l.pace.patience(l.timeout)
	if now.Sub(newest.took) >= patience {
		return true
	}
	l.wait(newest.took.Add(patience))
	return false
}

// passOn lets the next message about r's key go, now that r is answered.
func (l *lane) passOn(r *request) {
	key := r.command.Key
	if l.busy[key] != r {
		return
	}
	next := r.next
	for next != nil && next.answered {
		next = next.next
	}
	r.next = nil
	if next == nil {
		delete(l.busy, key)
		return
	}
	next.tail = r.tail
	l.busy[key] = next
	l.queue = append(l.queue, next)
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

// fail begins a failure of the node: what is not sent is answered by the caller of fail, and
// until a probe is answered nothing else will be sent.
func (l *lane) fail(err error) (dropped []*request, began bool) {
	if l.closed || l.failing != nil {
		return nil, false
	}
	l.failing = err
	l.probe.begin(l)
	return l.dropUnsent(), true
}

// dropUnsent empties the queue and the chains behind what is under way.
func (l *lane) dropUnsent() (dropped []*request) {
	drop := func(r *request) {
		if !r.answered {
			r.answered = true
			dropped = append(dropped, r)
		}
	}
	for _, r := range l.queue {
		if !r.apart {
			delete(l.busy, r.command.Key)
		}
		for ; r != nil; r = r.next {
			drop(r)
		}
	}
	l.queue = nil
	for _, r := range l.busy { // these are under way
		for next := r.next; next != nil; next = next.next {
			drop(next)
		}
		r.next, r.tail = nil, r
	}
	return dropped
}

func (l *lane) tell(requests []*request, a answer) {
	for _, r := range requests {
		r.to.answer(r, a)
	}
}

// drain returns a channel that is closed as soon as no message is queued or under way.
func (l *lane) drain() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	l.checkIdle()
	return l.drained
}

// close answers everything that is not under way. l.idle is closed when the rest is over, too.
func (l *lane) close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	dropped := l.dropUnsent()
	l.closed = true
	l.idle = make(chan struct{})
	l.debts = nil
	for _, timer := range []*time.Timer{l.watch, l.probe.timer, l.debtTry} {
		if timer != nil {
			timer.Stop()
		}
	}
	l.checkIdle()
	l.mu.Unlock()
	l.tell(dropped, answer{err: errLaneClosed, unsent: true})
}

// checkIdle lets those go who wait until nothing is left to do.
func (l *lane) checkIdle() {
	if l.drained != nil && len(l.busy) == 0 {
		closeOnce(l.drained)
	}
	if l.idle != nil && len(l.flights) == 0 && !l.boarding && l.probe.out == 0 {
		closeOnce(l.idle)
	}
}

// closeOnce is called with the lock held that guards c.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
