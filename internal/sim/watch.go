package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// mostValid is the longest validity of a lock: the whole TTL less the drift allowance.
func mostValid(ttl time.Duration) time.Duration {
	return ttl - quorum.Drift(ttl, redlock.DefaultDriftFactor)
}

// A Watch knows all locks that were won and says when something is so that must not be.
type Watch struct {
	began time.Time

	mu         sync.Mutex // guards all below
	names      map[string]*watched
	violations []string
	events     []event
}

type watched struct {
	token uint64
	holds []*hold // the last ones, in the order of winning
}

// A hold is one lock that was won.
type hold struct {
	lock *redlock.Lock
	who  string
	ttl  time.Duration
	// done is the context's channel, taken when the lock was won: asked again, a lock's context
	// would judge the clocks, and what is to be seen here is that it ends by itself.
	done <-chan struct{}
	over bool
}

// An event is kept for the report of a failure.
type event struct {
	at        time.Duration
	who, what string
	err       error
}

// keepEvents is how many events a report shows.
const keepEvents = 120

func newWatch() *Watch {
	return &Watch{began: time.Now(), names: make(map[string]*watched)}
}

// note keeps an event.
func (w *Watch) note(who, what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{time.Since(w.began), who, what, err})
}

func (w *Watch) failf(format string, args ...any) {
	w.violations = append(w.violations,
		fmt.Sprintf("%v: ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

// Violation reports something that a part of the world saw for itself.
func (w *Watch) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failf(format, args...)
}

// won takes in a lock, in the instant in which it was won and before its holder does anything.
func (w *Watch) won(l *redlock.Lock, who string, ttl time.Duration) {
	h := &hold{lock: l, who: who, ttl: ttl, done: l.Context().Done()}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.names[l.Name()]
	if name == nil {
		name = &watched{}
		w.names[l.Name()] = name
	}
	if l.Token() <= name.token {
		w.failf("%s won %q with token %d, after one with %d", who, l.Name(), l.Token(), name.token)
	}
	name.token = max(name.token, l.Token())
	for _, earlier := range name.holds {
		select {
		case <-earlier.done:
		default:
			w.failf("%s won %q, and the context of %s was not done", who, l.Name(), earlier.who)
		}
	}
	name.holds = append(name.holds, h)
	w.look(l.Name(), name)
	if len(name.holds) > 8 {
		name.holds = name.holds[len(name.holds)-8:]
	}
}

// Look checks what must hold at every moment.
func (w *Watch) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, watched := range w.names {
		w.look(name, watched)
	}
}

// look asks every lock twice: one that is valid when asked first and again after the others was
// valid when they were, and that of two is a fault. Asked once, a holder could free its lock
// between two looks in one instant. Called with w.mu held.
func (w *Watch) look(name string, watched *watched) {
	var valid []*hold
	for _, h := range watched.holds {
		if left := w.remaining(h); left > 0 {
			valid = append(valid, h)
			if most := mostValid(h.ttl); left > most {
				w.failf("%s holds %q for another %v; with a TTL of %v at most %v",
					h.who, name, left, h.ttl, most)
			}
		}
	}
	if len(valid) < 2 {
		return
	}
	var still []string
	for _, h := range valid[:len(valid)-1] {
		if w.remaining(h) > 0 {
			still = append(still, h.who)
		}
	}
	if len(still) > 0 {
		w.failf("%q is held by %s and %s", name, strings.Join(still, ", "), valid[len(valid)-1].who)
	}
}

// remaining is what a hold has left; what is over must stay over.
func (w *Watch) remaining(h *hold) time.Duration {
	left := h.lock.Remaining()
	if left > 0 && h.over {
		w.failf("%s holds %q again, after its lock was over", h.who, h.lock.Name())
	}
	h.over = h.over || left <= 0
	return left
}

// Keys checks what lies in the nodes.
func (w *Watch) Keys(nodes []*fakenode.Node) {
	for _, n := range nodes {
		for _, key := range n.Keys() {
			if key.Left == fakenode.NoEnd && key.Name != "ql:node" {
				w.violation("key %q on %s has no end", key.Name, n.Name())
			}
		}
	}
}

// NoLocks checks that no lock's key is left; when says after what.
func (w *Watch) NoLocks(nodes []*fakenode.Node, when string) {
	for _, n := range nodes {
		for _, key := range n.Keys() {
			if !strings.HasPrefix(key.Name, "ql:") {
				text, _ := n.Get(key.Name)
				w.violation("%s: key %q is still on %s, %s for another %v",
					when, key.Name, n.Name(), text, key.Left)
			}
		}
	}
}

// locks are the last ones of every name.
func (w *Watch) locks() (locks []*redlock.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.names {
		for _, h := range name.holds {
			locks = append(locks, h.lock)
		}
	}
	return locks
}

// report is the violations and the events that led to them.
func (w *Watch) report() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) == 0 {
		return nil
	}
	lines := append([]string(nil), w.violations...)
	events := w.events[max(0, len(w.events)-keepEvents):]
	for _, e := range events {
		line := fmt.Sprintf("    %12v  %-12s %s", e.at, e.who, e.what)
		if e.err != nil {
			line += ": " + e.err.Error()
		}
		lines = append(lines, line)
	}
	return lines
}
