package fakenode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// Why a message got no answer, as a client over TCP would put it.
var (
	errClosed  = errors.New("redis: client is closed")
	errReset   = errors.New("read tcp: connection reset by peer")
	errTimeout = timeoutError{}
)

// timeoutError is what a client reports that stopped waiting by a time-out of its own.
type timeoutError struct{}

func (timeoutError) Error() string { return "read tcp: i/o timeout" }
func (timeoutError) Timeout() bool { return true }

// A Link is one client's way to a node. Its methods may be called concurrently.
type Link struct {
	node   *Node
	faults *Faults
	once   sync.Once
	closed chan struct{}
}

var _ quorum.Node = (*Link)(nil)

// Node is the other end.
func (l *Link) Node() *Node { return l.node }

// Faults of this way, on top of the node's.
func (l *Link) Faults() *Faults { return l.faults }

// Name is the node's.
func (l *Link) Name() string { return l.node.name }

// Exec sends the batch and waits for the reply, or until ctx ends; what was sent is executed all
// the same. A batch without calls is a PING.
func (l *Link) Exec(ctx context.Context, batch *quorum.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.isClosed() {
		return errClosed
	}
	if l.isDown() {
		return fmt.Errorf("dial tcp %s: connect: connection refused", l.Name())
	}
	answer, err := l.carry(ctx, newMessage(l, batch))
	if err != nil {
		return err
	}
	return answer.fill(batch)
}

// carry is the client's side: it brings the message to the node and waits for the reply. The ways
// there and back pass on the sender's own goroutine, as most messages need no other. A message
// whose sender gives up on the way arrives all the same.
func (l *Link) carry(ctx context.Context, m *message) (*answer, error) {
	done := ctx.Done()
	var over <-chan time.Time
	if d := max(l.faults.ignored(), l.node.faults.ignored()); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		done, over = nil, timer.C
	}
	var way wayTimer
	defer way.stop()
	var got *answer // the reply that arrives next
	coming := !l.losesRequest()
	if coming && !way.set(l.requestTakes()) {
		coming = false
		l.node.arrive(m)
	}
	for {
		var err error
		select {
		case <-way.passed:
			if !coming {
				return got, nil
			}
			coming = false
			l.node.arrive(m)
			continue
		case a := <-m.answers:
			if got != nil && !a.at.Before(got.at) {
				continue
			}
			got = a
			if !way.set(time.Until(a.at)) {
				return got, nil
			}
			continue
		case <-done:
			err = ctx.Err()
		case <-over:
			err = errTimeout
		case <-l.closed:
			err = errClosed
		}
		if coming {
			time.AfterFunc(time.Until(way.end), func() { l.node.arrive(m) })
		}
		return nil, err
	}
}

// A wayTimer is what a message takes, in one direction after the other.
type wayTimer struct {
	timer  *time.Timer // nil until first needed
	passed <-chan time.Time
	end    time.Time
}

// set begins a way, unless it takes no time.
func (w *wayTimer) set(takes time.Duration) bool {
	switch {
	case takes <= 0:
		return false
	case w.timer == nil:
		w.timer = time.NewTimer(takes)
		w.passed = w.timer.C
	default:
		w.timer.Reset(takes)
	}
	w.end = time.Now().Add(takes)
	return true
}

func (w *wayTimer) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Close ends the link: whoever waits for an answer gets an error, and its listeners hear nothing
// any more. Requests on their way still arrive.
func (l *Link) Close() error {
	l.once.Do(func() { close(l.closed) })
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for listener := range n.listeners {
		if listener.link == l {
			listener.end()
		}
	}
	return nil
}

func (l *Link) String() string { return "link to fake node " + l.node.name }

func (l *Link) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// What the way does to a message: the node's faults and the link's together. Both are always
// asked, so that counted and random faults do not depend on each other.

func (l *Link) isDown() bool {
	return l.node.faults.isDown() || l.faults.isDown()
}

func (l *Link) isParted() bool {
	return l.node.faults.isParted() || l.faults.isParted()
}

func (l *Link) losesRequest() bool {
	a, b := l.node.faults.losesRequest(), l.faults.losesRequest()
	return a || b
}

func (l *Link) losesReply() bool {
	a, b := l.node.faults.losesReply(), l.faults.losesReply()
	return a || b
}

func (l *Link) losesPublished() bool {
	a, b := l.node.faults.losesPublished(), l.faults.losesPublished()
	return a || b
}

func (l *Link) requestTakes() time.Duration {
	return l.node.faults.requestTakes() + l.faults.requestTakes()
}

func (l *Link) replyTakes() time.Duration {
	return l.node.faults.replyTakes() + l.faults.replyTakes()
}

// answered is how many of a batch's replies arrive before the connection breaks.
func (l *Link) answered(calls int) int {
	return min(l.node.faults.answered(calls), l.faults.answered(calls))
}

// repeats says whether the batch comes again; the link is asked only if the node has no say.
func (l *Link) repeats() (time.Duration, bool) {
	if after, again := l.node.faults.repeats(); again {
		return after, true
	}
	return l.faults.repeats()
}
