package quorum

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
)

// registerLife is how long a fencing register outlives the last use of its name: a week.
const registerLife = 7 * 24 * time.Hour

// registerStep is how much longer its key lives. A node prolongs that only when the token's leading
// digits change, all but ten: tokens are microseconds.
const registerStep = 1e10 * time.Microsecond

// Settings are what an engine needs to know. All are required; redlock validates them.
type Settings struct {
	NodeTimeout time.Duration // one node's answer
	MaxTTL      time.Duration // no lock asks for more
	DriftFactor float64
	Prefix      string
	Clock       clock.Clock

	// Guard: a node that lost its memory gives no vote for MaxTTL. TrustReplicas: a node with
	// replicas votes also without min-replicas-to-write.
	Guard, TrustReplicas bool

	// LookOnly: asking a node how it is writes nothing there; a memory that nobody knew does not
	// begin to wait by it.
	LookOnly bool

	// OwnStep is told when our own clocks stood still, as in a suspension, and by how much.
	OwnStep func(d time.Duration)

	// Warn is told, once each, of what an operator should know of a node.
	Warn func(node int, text string)

	// Trouble is told when a node begins to fail, and with nil when it answers again.
	Trouble func(node int, err error)
}

// An Engine asks a fixed set of nodes. Its methods may be called concurrently.
type Engine struct {
	set   Settings
	nodes []Node
	lanes []*lane
	front front
	last  atomic.Int64 // the last fencing token proposed

	serversMu sync.Mutex      // guards servers and said
	servers   map[string]int  // run id: index of the node that votes for it
	said      map[string]bool // warnings that were told

	weighing    chan struct{} // room for one: who decides whose clock stepped
	ourStep     time.Duration // the last one charged to us, and when, monotonic; guarded by weighing
	ourStepAt   time.Duration
	trouble     func(node int, err error)
	largest     atomic.Pointer[millis] // the largest MaxTTL seen on any node
	lastAcquire atomic.Pointer[acquireCommon]
	ears        ears
	crew        crew
	count       Counters
	args        sharedArgs

	began    time.Time     // deadlines count from here
	stopped  chan struct{} // no attempt goes on after this is closed
	stopOnce sync.Once
}

// ErrStopped is the error of attempts that were under way when the engine was stopped.
var ErrStopped = errors.New("quorum: engine stopped")

// sharedArgs are arguments that are the same in all commands of a client, made once.
type sharedArgs struct {
	node      any // key of the node hash
	allowance any // d, us
	halfLife  any // us
	life      any // ms
	maxTTL    any // ms
}

// Counters count what happened, for tests that want to know what they have covered.
type Counters struct {
	Splits, Yields, Plants, Raises, Late, Repeats atomic.Int64
}

// New makes an engine of nodes that are independent of each other.
func New(nodes []Node, set Settings) *Engine {
	e := &Engine{set: set, nodes: nodes, began: time.Now(), stopped: make(chan struct{}),
		weighing: make(chan struct{}, 1)}
	e.args = sharedArgs{
		node:      set.Prefix + "ql:node",
		allowance: (set.MaxTTL / 2).Microseconds(),
		halfLife:  (registerLife / 2).Microseconds(),
		life:      ceilMillis(registerLife + registerStep),
		maxTTL:    ceilMillis(set.MaxTTL),
	}
	e.largest.Store(&millis{set.MaxTTL, e.args.maxTTL})
	e.trouble = func(node int, err error) {
		if set.Trouble != nil {
			set.Trouble(node, err)
		}
	}
	for i, node := range nodes {
		e.lanes = append(e.lanes, newLane(e, node, i, e.trouble))
	}
	e.front.choose(len(nodes), e.Quorum())
	e.ears.engine = e
	e.crew = newCrew(e.stopped)
	return e
}

// moment is t as requests have their deadlines: a third of the size, and there are ten of them in a
// lock and its unlock. t has to have a monotonic reading.
func (e *Engine) moment(t time.Time) time.Duration { return t.Sub(e.began) }

// at is the time of such a moment.
func (e *Engine) at(moment time.Duration) time.Time { return e.began.Add(moment) }

// maxMaxTTL bounds what a node can say of other users' MaxTTL: a week. It keeps one node that says
// nonsense from taking the others' votes away for ever.
const maxMaxTTL = 7 * 24 * time.Hour

// millis is a duration with its wire form, made once and not for each message.
type millis struct {
	d     time.Duration
	boxed any
}

// noteMaxTTL takes in what a node says of the largest MaxTTL of its users.
func (e *Engine) noteMaxTTL(d time.Duration) {
	d = min(d, maxMaxTTL)
	for {
		old := e.largest.Load()
		if d <= old.d || e.largest.CompareAndSwap(old, &millis{d, ceilMillis(d)}) {
			return
		}
	}
}

// Nodes is the number of configured nodes, Quorum their majority.
func (e *Engine) Nodes() int { return len(e.nodes) }

// Quorum is the majority of the configured nodes.
func (e *Engine) Quorum() int { return Majority(len(e.nodes)) }

// NodeName is the name of the i-th node.
func (e *Engine) NodeName(i int) string { return e.nodes[i].Name() }

// Counters of this engine, live.
func (e *Engine) Counters() *Counters { return &e.count }

// Validity of a lock with this TTL whose round began at started, judged now.
func (e *Engine) Validity(ttl time.Duration, started clock.Reading) time.Duration {
	return Validity(ttl, e.set.Clock.Now().Since(started), e.set.DriftFactor)
}

// ValidUntil is the moment at which such a lock ends.
func (e *Engine) ValidUntil(ttl time.Duration, started clock.Reading) clock.Reading {
	return started.Add(Validity(ttl, 0, e.set.DriftFactor))
}

// propose makes a fencing token to propose: this machine's clock in microseconds, but never the
// same twice.
func (e *Engine) propose(now clock.Reading) uint64 {
	for {
		last := e.last.Load()
		next := max(now.Wall.Microseconds(), last+1, 1)
		if e.last.CompareAndSwap(last, next) {
			return uint64(next)
		}
	}
}

// Stop ends all attempts with ErrStopped. Releases still go out.
func (e *Engine) Stop() { e.stopOnce.Do(func() { close(e.stopped) }) }

// Close stops the engine, lets messages that are queued go out, and closes the nodes' connections.
// It waits for all that, but not longer than the context.
func (e *Engine) Close(ctx context.Context) error {
	e.Stop()
	e.ears.close()
	for _, l := range e.lanes {
		select {
		case <-l.drain():
		case <-ctx.Done():
		}
	}
	for _, l := range e.lanes {
		l.close()
	}
	var errs []error
	for _, node := range e.nodes {
		errs = append(errs, node.Close())
	}
	for _, l := range e.lanes {
		select {
		case <-l.idle:
		case <-ctx.Done():
		}
	}
	return errors.Join(errs...)
}

// ceilMillis is d in the nodes' unit. Sub-millisecond parts are rounded up: a key may live longer
// than its holder believes, never shorter.
func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
