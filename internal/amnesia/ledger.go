package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// valid is a lock as the ledger sees it.
type valid interface{ Remaining() time.Duration }

// A hold is a lock from the call that won it until it was given back or found lost.
type hold struct {
	name  string
	token uint64
	lock  valid
	won   time.Time // at or after the moment from which it was valid
	seen  time.Time // at or before the last moment at which it was found valid
}

// counts are what a ledger counted.
type counts struct {
	won, lost, unheld, unquorate, doubles, fallen int
}

func (c *counts) add(o counts) {
	c.won += o.won
	c.lost += o.lost
	c.unheld += o.unheld
	c.unquorate += o.unquorate
	c.doubles += o.doubles
	c.fallen += o.fallen
}

// A ledger notes who holds what. A validity has no gaps, so a lock that was won and is found valid
// was valid all the time in between: two such spans of one name that overlap are two holders at
// one moment. Spans are noted too short rather than too long, so that what is reported is true.
type ledger struct {
	mu     sync.Mutex // guards what follows
	counts counts
	live   map[string][]*hold
	ended  map[string]*hold  // the one that was seen last
	tokens map[string]uint64 // the largest
	faults []string          // the first ones, in words
}

func newLedger() *ledger {
	return &ledger{live: map[string][]*hold{}, ended: map[string]*hold{},
		tokens: map[string]uint64{}}
}

// enter notes that a lock was won just now.
func (g *ledger) enter(name string, token uint64, lock valid) *hold {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	h := &hold{name: name, token: token, lock: lock, won: now, seen: now}
	if lock.Remaining() <= 0 {
		// Lost before anybody could act under it: on a busy machine the call's goroutine may
		// run that late. Others may have come and gone in between, with larger tokens.
		g.counts.unheld++
		return h
	}
	g.counts.won++
	if last := g.ended[name]; last != nil && last.seen.After(h.won) {
		g.double(last, h)
	}
	for _, other := range g.live[name] {
		if other.valid() && h.valid() { // in this order: h is valid from before to after
			g.double(other, h)
		}
	}
	if largest := g.tokens[name]; token <= largest {
		g.counts.fallen++
		g.fault("%s: token %d after %d", name, token, largest)
	}
	g.tokens[name] = max(g.tokens[name], token)
	g.live[name] = append(g.live[name], h)
	return h
}

// valid asks the lock. What it says was also true when it was asked.
func (h *hold) valid() bool {
	now := time.Now()
	if h.lock.Remaining() <= 0 {
		return false
	}
	h.seen = now
	return true
}

// look reports whether the lock is still valid.
func (g *ledger) look(h *hold) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return h.valid()
}

// leave notes that a hold ends, before its lock is given back.
func (g *ledger) leave(h *hold, lost bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if lost {
		g.counts.lost++
	}
	g.live[h.name] = slices.DeleteFunc(g.live[h.name], func(o *hold) bool { return o == h })
	if last := g.ended[h.name]; last == nil || h.seen.After(last.seen) {
		g.ended[h.name] = h
	}
}

func (g *ledger) double(a, b *hold) {
	g.counts.doubles++
	g.fault("%s: token %d was won while token %d was still valid", b.name, b.token, a.token)
}

// fault writes down what is wrong. Some are enough to read.
func (g *ledger) fault(format string, args ...any) {
	if len(g.faults) < 10 {
		g.faults = append(g.faults, fmt.Sprintf(format, args...))
	}
}

func (g *ledger) noQuorum() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.unquorate++
}

func (g *ledger) sum() counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts
}

// violated reports whether something was seen that must not be.
func (g *ledger) violated() bool {
	c := g.sum()
	return c.doubles+c.fallen > 0
}

// awaitHolder waits until all names are held, or for a second until at least one is. On a machine
// that is too busy for so short a TTL nobody may get one for long: after three seconds it goes on
// all the same. It reports false when ctx ends before that.
func (g *ledger) awaitHolder(ctx context.Context, names int) bool {
	for began := time.Now(); ctx.Err() == nil; pause(ctx, time.Millisecond) {
		held, waited := g.held(), time.Since(began)
		if held == names || held > 0 && waited > time.Second || waited > 3*time.Second {
			return true
		}
	}
	return false
}

// held is how many names have a holder.
func (g *ledger) held() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, holds := range g.live {
		if slices.ContainsFunc(holds, (*hold).valid) {
			n++
		}
	}
	return n
}
