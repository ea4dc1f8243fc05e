package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

const namePrefix = "hold/"

func lockName(i int) string { return fmt.Sprintf("%s%07d", namePrefix, i) }

// A ledger notes each lock's rounds, as an Observer sees them.
type ledger struct {
	began time.Time
	every time.Duration // between renewals
	valid time.Duration // from the beginning of a round

	lost    atomic.Int64
	failed  atomic.Int64 // renewals that did not reach their quorum, and were repeated
	extends atomic.Int64

	mu      sync.Mutex // guards what follows
	entries []entry
	late    time.Duration // the longest that a renewal began after its planned moment
	done    time.Duration // the longest from the planned moment to the quorum
	left    time.Duration // the least validity that a lock had at its renewal
}

// An entry is of one lock.
type entry struct {
	round    time.Duration // when the last good round began, since ledger.began
	renewals int32
}

func newLedger(s settings) *ledger {
	return &ledger{
		began: time.Now(), every: s.ttl / 3, entries: make([]entry, s.locks), left: s.ttl,
		// The specification's drift with the default factor.
		valid: s.ttl - s.ttl/100 - 2*time.Millisecond,
	}
}

func (g *ledger) observer() *redlock.Observer {
	return &redlock.Observer{
		Round: g.round,
		Lost:  func(redlock.Event) { g.lost.Add(1) },
	}
}

// round notes a decided round.
func (g *ledger) round(r redlock.Round) {
	number, isOurs := strings.CutPrefix(r.Name, namePrefix)
	i, err := strconv.Atoi(number)
	if !isOurs || err != nil {
		return
	}
	now := time.Since(g.began)
	began := now - r.Took
	switch {
	case r.Op == "extend" && r.Err != nil:
		g.failed.Add(1)
	case r.Op == "extend":
		g.extends.Add(1)
		g.renewed(i, began, now)
	case r.Op == "lock" && r.Err == nil:
		g.mu.Lock()
		g.entries[i].round = began
		g.mu.Unlock()
	}
}

func (g *ledger) renewed(i int, began, now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := &g.entries[i]
	planned := e.round + g.every
	g.late = max(g.late, began-planned)
	g.done = max(g.done, now-planned)
	g.left = min(g.left, e.round+g.valid-now)
	e.round = began
	e.renewals++
}

// leastRenewals is how often the lock with the fewest was renewed.
func (g *ledger) leastRenewals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.entries) == 0 {
		return 0
	}
	least := g.entries[0].renewals
	for i := range g.entries {
		least = min(least, g.entries[i].renewals)
	}
	return int(least)
}
