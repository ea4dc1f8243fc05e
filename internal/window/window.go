// Package window bounds how much of a process's work is under way at the nodes at once. Thousands
// of tries that set out together keep each other from an answer in time, are all tried again, and
// none of them ever succeeds: congestion collapse, which TCP's congestion window (RFC 5681) ended.
package window

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// A Window has places for tries. It begins with a few, has one more for each try that went
// smoothly, which doubles it in the time of one try, and half as many after one that went badly.
// From that size on it grows by one in the time of one try: twice as many were too many. Nor does it
// grow by tries that took much longer than the quickest: they stood in a queue at the nodes. An empty
// window begins anew. Its methods may be called concurrently.
type Window struct {
	first, most int
	slack       time.Duration

	mu      sync.Mutex // guards all below
	size    int        // places
	enough  int        // from this size on it grows slowly
	smooth  int        // tries that went smoothly since it last grew slowly
	taken   int
	least   time.Duration // that a try took which went smoothly; 0: none has
	age     int           // how often it was halved, or began anew
	waiting queue
	arrived uint64
}

// New makes a Window that begins with so many places and never has more than most. A try that takes
// twice as long as the quickest, and slack, is not too long.
func New(first, most int, slack time.Duration) *Window {
	return &Window{first: first, most: most, slack: slack, size: first, enough: most}
}

// Why Enter returned without a place, beside the error of the context.
var (
	ErrNoTurn = errors.New("no turn in time: too many others went before")
	ErrClosed = errors.New("closed")
)

// A Wait is how long a try waits for a place, and in which order.
type Wait struct {
	By     time.Time       // not longer than until then; zero: without a bound
	Closed <-chan struct{} // nor after this is closed
	Order  time.Duration   // as if it had come later by this; below 0: earlier
}

// A Place is a try's, from Enter to Leave.
type Place struct {
	window  *Window
	age     int
	entered time.Time
}

// Enter takes a place. If there is none it waits for one, until ctx ends or as how says; those that
// wait go in the order in which they came. Without an error the caller has to Leave.
func (w *Window) Enter(ctx context.Context, how Wait) (Place, error) {
	w.mu.Lock()
	if len(w.waiting) == 0 && w.taken < w.size {
		w.taken++
		defer w.mu.Unlock()
		return Place{w, w.age, time.Now()}, nil
	}
	w.arrived++
	t := &ticket{turn: make(chan struct{}), due: time.Now().Add(how.Order), number: w.arrived}
	heap.Push(&w.waiting, t)
	w.mu.Unlock()

	var over <-chan time.Time
	if !how.By.IsZero() {
		timer := time.NewTimer(time.Until(how.By))
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case <-t.turn:
	case <-ctx.Done():
		err = ctx.Err()
	case <-how.Closed:
		err = ErrClosed
	case <-over:
		err = ErrNoTurn
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.index >= 0 { // still waiting
		heap.Remove(&w.waiting, t.index)
		return Place{}, err
	}
	return Place{w, t.age, time.Now()}, nil
}

// A Result is how a try went.
type Result uint8

// The results.
const (
	Plain    Result = iota // says nothing of how busy nodes and others are
	Smoothly               // answered as it was to be
	Badly                  // no answer in time, or in the way of others
)

// Leave gives the place back.
func (p Place) Leave(result Result) {
	w := p.window
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken--
	switch {
	case p.age != w.age: // it says nothing of the window as it is now
	case result == Smoothly:
		took := time.Since(p.entered)
		if w.least == 0 || took < w.least {
			w.least = max(took, 1)
		}
		if took > 2*w.least+w.slack {
			break
		}
		if w.smooth++; w.size < w.enough || w.smooth >= w.size {
			w.size, w.smooth = min(w.size+1, w.most), 0
		}
	case result == Badly: // once for all that were under way together
		w.size = max(w.size/2, 1)
		w.enough, w.smooth = w.size, 0
		w.age++
	}
	if w.taken == 0 && len(w.waiting) == 0 {
		w.size, w.enough, w.least = w.first, w.most, 0
		w.age++
	}
	for w.taken < w.size && len(w.waiting) > 0 {
		t := heap.Pop(&w.waiting).(*ticket)
		t.age = w.age
		w.taken++
		close(t.turn)
	}
}

// A ticket is a try that waits.
type ticket struct {
	turn   chan struct{} // closed when it has a place
	due    time.Time     // when it came, or is to count as having come
	number uint64        // of several that came at once
	index  int           // in the queue; -1: it has a place
	age    int           // of the window when it got it
}

// A queue is those who wait, a heap by when they came.
type queue []*ticket

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].number < q[j].number
	}
	return q[i].due.Before(q[j].due)
}
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *queue) Push(x any) {
	t := x.(*ticket)
	t.index = len(*q)
	*q = append(*q, t)
}
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}
