package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A holdingResult is what it costs to hold some locks, all by one client, renewed over and over.
type holdingResult struct {
	locks      int
	bytes      float64       // of heap per lock
	goroutines int           // more with all locks than with a hundredth of them, at rest
	renewals   int64         // while it was watched
	commands   float64       // per renewal, at all nodes together
	cores      float64       // of this process, while it was watched
	late       time.Duration // the longest from the planned moment of a renewal to its quorum
	lost       int64
	held       int // with validity left at the end
}

// measureHoldings holds each number of locks, one number after the other.
func measureHoldings(
	ctx context.Context, s *stage, f *form, say progress,
) (all []holdingResult, err error) {
	for _, locks := range f.holdings {
		r, err := hold(ctx, s, locks, f.holdTTL)
		if err != nil {
			return nil, fmt.Errorf("%d held locks: %w", locks, err)
		}
		all = append(all, r)
		say("%d held locks", locks)
	}
	return all, nil
}

// hold takes the locks, and watches them over two renewals of each.
func hold(
	ctx context.Context, s *stage, locks int, ttl time.Duration,
) (r holdingResult, err error) {
	nodes := s.healthy[:usualNodes]
	book := newRenewals(locks, ttl)
	// The longest NodeTimeout there is: Close frees what it can within four of them, and 100,000
	// locks are more than it can with the default.
	c, err := redlock.New(redlock.Config{Addrs: nodes.Addrs(), TTL: ttl, NodeTimeout: ttl / 4,
		Logger: slog.New(slog.DiscardHandler), Observer: book.observer()})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	held := make([]*redlock.Lock, locks)
	// The first lock opens the connections and loads the scripts: no part of what a lock costs.
	nothing := func(context.Context, *redlock.Lock) error { return nil }
	if err := c.Do(ctx, "warm up", nothing); err != nil {
		return r, err
	}
	before := atRest()
	few := max(locks/100, 1)
	if err := take(ctx, c, book.names[:few], held[:few]); err != nil {
		return r, err
	}
	some := atRest()
	if err := take(ctx, c, book.names[few:], held[few:]); err != nil {
		return r, err
	}
	many := atRest()
	r.locks = locks
	r.bytes = float64(many.heap-before.heap) / float64(locks)
	r.goroutines = many.goroutines - some.goroutines

	if err := forgetCommands(ctx, nodes); err != nil {
		return r, err
	}
	renewed, cpu, began := book.renewed.Load(), cpuTime(), time.Now()
	pause(ctx, 2*ttl/3)
	r.cores = (cpuTime() - cpu).Seconds() / time.Since(began).Seconds()
	r.renewals = book.renewed.Load() - renewed
	counted, err := countCommands(ctx, nodes)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return r, err
	}
	r.commands = float64(counted.sent(nil)) / max(float64(r.renewals), 1)
	r.late, r.lost = book.longest(), book.lost.Load()
	for _, l := range held {
		if l.Remaining() > 0 {
			r.held++
		}
	}
	return r, nil
}

// take takes the locks of these names, up to 512 at once. Nobody else wants them: Lock rather than
// TryLock is for nodes that do not keep up for a moment.
func take(ctx context.Context, c *redlock.Client, names []string, held []*redlock.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	const callers = 512
	var next atomic.Int64
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for caller := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(names); i = int(next.Add(1)) - 1 {
				if held[i], errs[caller] = c.Lock(ctx, names[i]); errs[caller] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // one is enough to read
		}
	}
	return nil
}

// usage is what the process uses at rest.
type usage struct {
	goroutines int
	heap       int64
}

// atRest takes stock. Goroutines of requests under way come and go: the least of some looks is the
// number at rest.
func atRest() usage {
	u := usage{goroutines: runtime.NumGoroutine()}
	for range 50 {
		time.Sleep(time.Millisecond)
		u.goroutines = min(u.goroutines, runtime.NumGoroutine())
	}
	runtime.GC()
	runtime.GC() // the second empties the pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	u.heap = int64(stats.HeapAlloc)
	return u
}

// renewals notes when each lock was renewed, as an Observer is told.
type renewals struct {
	names         []string
	began         time.Time
	every         time.Duration // between the beginnings of two renewals
	renewed, lost atomic.Int64

	mu    sync.Mutex      // guards what follows
	last  []time.Duration // by lock, when its last good round began, since began
	worst time.Duration
}

const holdingPrefix = "holding/"

func newRenewals(locks int, ttl time.Duration) *renewals {
	n := &renewals{began: time.Now(), every: ttl / 3, last: make([]time.Duration, locks)}
	for i := range locks {
		n.names = append(n.names, holdingPrefix+strconv.Itoa(i))
	}
	return n
}

func (n *renewals) observer() *redlock.Observer {
	return &redlock.Observer{Round: n.round, Lost: func(redlock.Event) { n.lost.Add(1) }}
}

// round notes a round that reached its quorum.
func (n *renewals) round(r redlock.Round) {
	number, isOurs := strings.CutPrefix(r.Name, holdingPrefix)
	i, err := strconv.Atoi(number)
	if !isOurs || err != nil || r.Err != nil || (r.Op != "lock" && r.Op != "extend") {
		return
	}
	n.note(i, r.Op == "extend", time.Since(n.began), r.Took)
}

// note takes in a round of lock i that was decided now, and took so long.
func (n *renewals) note(i int, extended bool, now, took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if extended {
		n.renewed.Add(1)
		n.worst = max(n.worst, now-(n.last[i]+n.every))
	}
	n.last[i] = now - took
}

// longest is the longest from the planned moment of a renewal to its quorum.
func (n *renewals) longest() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.worst
}
