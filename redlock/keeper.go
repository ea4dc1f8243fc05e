package redlock

import (
	"container/heap"
	"sync"
	"time"
)

// A keeper looks after all held locks of a client with one timer: it renews each when it is due
// and ends each whose validity is over. A held lock has no goroutine. The heap is also the set of
// the locks that are held.
type keeper struct {
	client *Client

	mu     sync.Mutex // guards below; taken after Lock.mu, never before
	locks  lockHeap
	timer  *time.Timer
	fires  time.Duration // the due that the timer is set for; 0: not set
	closed bool

	queue    []*Lock // due for renewal, in that order
	out      int     // renewals under way
	starting bool    // startRenewals runs
}

// maxRenewals is how many renewals are under way at once. Were very many that are due at the same
// moment all sent together, most would wait in the lanes until they are given up unsent, and be
// repeated together.
const maxRenewals = 2048

// schedule puts l into the heap, or moves it, so that tick is called at due.
// Called with l.mu held.
func (k *keeper) schedule(l *Lock, due time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	l.due = due
	if l.index < 0 {
		heap.Push(&k.locks, l)
	} else {
		heap.Fix(&k.locks, l.index)
	}
	k.setTimer()
	return true
}

// remove takes l out. Called with l.mu held.
func (k *keeper) remove(l *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.index >= 0 {
		heap.Remove(&k.locks, l.index)
	}
}

// setTimer sets the timer for the first lock. A timer that fires for a lock that is gone only
// looks once too often, so it is set anew only for an earlier moment.
func (k *keeper) setTimer() {
	if len(k.locks) == 0 {
		return
	}
	due := k.locks[0].due
	if k.fires != 0 && k.fires <= due {
		return
	}
	k.fires = due
	wait := due - k.client.clock.Now().Mono
	if k.timer == nil {
		k.timer = time.AfterFunc(wait, k.run)
		return
	}
	k.timer.Reset(wait)
}

// run calls tick for every lock that is due.
func (k *keeper) run() {
	now := k.client.clock.Now()
	var due []*Lock
	k.mu.Lock()
	for len(k.locks) > 0 && k.locks[0].due <= now.Mono {
		due = append(due, k.locks[0])
		// Out of the way until tick has said when to look again.
		k.locks[0].due = now.Mono + noEnd
		heap.Fix(&k.locks, 0)
	}
	k.fires = 0
	k.setTimer()
	k.mu.Unlock()
	for _, l := range due {
		l.tick()
	}
}

// enqueue renews l as soon as there is room. It may be called with l.mu held.
func (k *keeper) enqueue(l *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue = append(k.queue, l)
	k.goOn()
}

// done is called when a renewal is decided.
func (k *keeper) done() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.out--
	k.goOn()
}

// goOn sees to it that queued renewals are started. Called with k.mu held.
func (k *keeper) goOn() {
	if !k.starting && len(k.queue) > 0 && k.out < maxRenewals {
		k.starting = true
		go k.startRenewals()
	}
}

// startRenewals starts what is queued, as far as there is room. It is one goroutine at a time, and
// no renewal is started by another's end: where nodes are known to fail an extend is decided before
// it returns, and ends would nest.
func (k *keeper) startRenewals() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 && k.out < maxRenewals && !k.closed {
		l := k.queue[0]
		k.queue[0] = nil
		k.queue = k.queue[1:]
		k.out++
		k.mu.Unlock()
		begun := l.renew()
		k.mu.Lock()
		if !begun {
			k.out--
		}
	}
	if len(k.queue) == 0 || k.closed {
		k.queue = nil
	}
	k.starting = false
}

// all are the locks that are held.
func (k *keeper) all() []*Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*Lock(nil), k.locks...)
}

// close stops the timer and hands over the locks that are held.
func (k *keeper) close() []*Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	return append([]*Lock(nil), k.locks...)
}

// lockHeap orders locks by due. Each knows its place.
type lockHeap []*Lock

func (h lockHeap) Len() int           { return len(h) }
func (h lockHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h lockHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *lockHeap) Push(x any) {
	l := x.(*Lock)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop is for package heap.
func (h *lockHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.index = -1
	return l
}
