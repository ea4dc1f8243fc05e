package fakenode

import (
	"sync"
	"time"
)

// A pipe is one direction of a connection: what is put in comes out in order, one thing at a time,
// each after its delay and what was put in before it. An empty pipe has no goroutine.
type pipe struct {
	mu    sync.Mutex // guards all below
	items []item
	last  time.Time // when the newest comes out
	busy  bool      // a goroutine or a timer will look at the items
	ended bool
}

type item struct {
	due time.Time
	do  func()
}

// put does not block, and never runs do on the caller's goroutine.
func (p *pipe) put(delay time.Duration, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	now := time.Now()
	due := now.Add(max(0, delay))
	if due.Before(p.last) {
		due = p.last
	}
	p.last = due
	p.items = append(p.items, item{due: due, do: do})
	if !p.busy {
		p.busy = true
		p.next(now)
	}
}

// next has the oldest item looked at when it is due. It is called with p.mu held.
func (p *pipe) next(now time.Time) {
	if wait := p.items[0].due.Sub(now); wait > 0 {
		time.AfterFunc(wait, p.run)
		return
	}
	go p.run()
}

// run lets out what is due. It ends when nothing is.
func (p *pipe) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.items) > 0 {
		now := time.Now()
		if p.items[0].due.After(now) {
			p.next(now)
			return
		}
		do := p.items[0].do
		p.items = p.items[1:]
		p.mu.Unlock()
		do()
		p.mu.Lock()
	}
	p.busy = false
}

// clear drops what is in the pipe.
func (p *pipe) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = nil
}

// end drops what is in the pipe and takes nothing more.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items, p.ended = nil, true
}
