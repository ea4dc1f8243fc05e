package quorum

import (
	"errors"
	"sync"
	"sync/atomic"
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

// NoAnswerInTime reports whether err is, or wraps, that of a node that did not answer in time, or
// could not be sent to: it may be gone, or be asked more than it can do.
func NoAnswerInTime(err error) bool {
	return errors.Is(err, errNodeTimeout) || errors.Is(err, errUnsent)
}

// A request is one message to one node, from submit to its answer.
type request struct {
	command  *Command
	to       receiver
	deadline time.Duration // see Engine.moment
	node     int16         // the node's index
	guarded  bool          // acquire or plant: counts only if the node's memory is the expected one
	apart    bool          // in no order with others about the key

	// Guarded by lane.mu.
	sent     bool     // the node may have seen it
	answered bool     // to was told
	urgent   bool     // it is not to wait behind the front
	next     *request // the following message about the same key, which waits for this one
	tail     *request // on the one in lane.busy: the last of those that wait for it
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
// is answered. A lane without work has no goroutine, or soon none (see crew).
type lane struct {
	engine  *Engine
	node    Node
	index   int
	timeout time.Duration // of a flight
	trouble func(node int, err error)
	flying  func()      // fly, made once
	mute    atomic.Bool // it gave no vote when it was last asked

	mu        sync.Mutex // guards all below
	closed    bool
	queue     []*request          // may be sent now
	busy      map[string]*request // by key: the message that the others about it wait for
	flights   []*flight
	departs   time.Time // of a lane behind the front: not before this; zero: at once
	boarding  bool      // a goroutine is about to take off, with what is queued by then
	spare     *flight   // to be used again
	failing   error     // nil: the node answers
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

func newLane(engine *Engine, node Node, index int, trouble func(int, error)) *lane {
	l := &lane{engine: engine, node: node, index: index, timeout: engine.set.NodeTimeout,
		trouble: trouble, busy: make(map[string]*request), guard: guard{off: !engine.set.Guard}}
	l.flying = l.fly
	return l
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
	l.wait(l.engine.at(r.deadline))
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
	l.hurry(r)
	begin := l.board()
	l.mu.Unlock()
	if begin {
		l.engine.crew.carry(l.flying)
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

// passOn lets the next message about r's key go, now that r is answered.
func (l *lane) passOn(r *request) {
	if r.tail == nil {
		return
	}
	next := r.next
	for next != nil && next.answered {
		next = next.next
	}
	tail := r.tail
	r.next, r.tail = nil, nil
	if next == nil {
		delete(l.busy, r.command.Key)
		return
	}
	next.tail = tail
	l.busy[next.command.Key] = next
	l.queue = append(l.queue, next)
	l.hurry(next)
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
		if r.tail != nil {
			delete(l.busy, r.command.Key)
			r.tail = nil
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
