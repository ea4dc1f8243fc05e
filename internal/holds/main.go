// Command holds takes very many locks in one process and keeps them over several renewals, to see
// what a held lock costs: memory, CPU time, and no goroutine.
//
//	go run ./internal/holds
//	go run ./internal/holds -locks 20000 -ttl 15s
//
// The exit status is 1 if a lock was lost, or goroutines grew with the number of locks. Whether a
// machine can renew that many locks in a third of the TTL is a matter of the machine: the least
// validity left at a renewal says how near it came to its limit.
//
// In reading order: main.go, ledger.go, report.go, cpu_*.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/fleet"
	"github.com/quorumlock/quorumlock/redlock"
)

// settings are what the flags say.
type settings struct {
	locks    int
	callers  int
	ttl      time.Duration
	renewals int
	nodes    int
	timeout  time.Duration
}

func main() {
	var s settings
	flag.IntVar(&s.locks, "locks", 100_000, "locks to hold")
	flag.IntVar(&s.callers, "callers", 512, "that take them, at once")
	flag.DurationVar(&s.ttl, "ttl", time.Minute, "of each lock; it is renewed every third of it")
	flag.IntVar(&s.renewals, "renewals", 3, "of each lock to wait for")
	flag.IntVar(&s.nodes, "nodes", 5, "nodes")
	flag.DurationVar(&s.timeout, "timeout", time.Second,
		"of one node's answer: more than the default, since all nodes share this machine")
	flag.Parse()

	ok, err := run(context.Background(), s, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "holds:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// insideMost is how many locks nodes inside this process can carry: they look at all keys at each
// move of their clocks.
const insideMost = 2000

// run holds the locks and reports whether all stayed held without goroutines of their own.
func run(ctx context.Context, s settings, out, progress io.Writer) (ok bool, err error) {
	nodes, err := fleet.Start(ctx, s.nodes)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	if !nodes.Real() && s.locks > insideMost {
		fmt.Fprintf(progress, "no redis-server: %d locks instead of %d\n", insideMost, s.locks)
		s.locks = insideMost
	}
	fmt.Fprintf(out, "%v, %d locks, TTL %v, renewed every %v, NodeTimeout %v\n\n", nodes, s.locks,
		s.ttl, s.ttl/3, min(s.timeout, s.ttl/4))

	m := measurement{settings: s, ledger: newLedger(s)}
	c, err := redlock.New(redlock.Config{
		Addrs: nodes.Addrs(), TTL: s.ttl, NodeTimeout: min(s.timeout, s.ttl/4),
		Logger:   slog.New(slog.DiscardHandler),
		Observer: m.ledger.observer(),
	})
	if err != nil {
		return false, err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := m.hold(ctx, c, progress); err != nil {
		return false, err
	}
	m.watch(progress)
	began := time.Now()
	err, closed = c.Close(), true
	m.closing, m.closeErr = time.Since(began), err
	return m.report(out), nil
}

// A measurement is one run.
type measurement struct {
	settings settings
	ledger   *ledger
	locks    []*redlock.Lock

	before, few, many usage // without locks, with a hundredth of them, with all
	most              int   // goroutines seen at once, from the first lock on
	cpu               time.Duration
	watched           time.Duration
	held              int // at the end
	closing           time.Duration
	closeErr          error
}

// usage is what the process uses at rest.
type usage struct {
	goroutines int
	heap       int64
	cpu        time.Duration
}

// used takes stock. Goroutines of requests under way come and go: the least of some looks is the
// number at rest.
func used() usage {
	u := usage{goroutines: runtime.NumGoroutine()}
	for range 50 {
		time.Sleep(time.Millisecond)
		u.goroutines = min(u.goroutines, runtime.NumGoroutine())
	}
	runtime.GC()
	runtime.GC() // the second empties the pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	u.heap, u.cpu = int64(stats.HeapAlloc), cpuTime()
	return u
}

// hold takes all locks.
func (m *measurement) hold(ctx context.Context, c *redlock.Client, progress io.Writer) error {
	m.locks = make([]*redlock.Lock, m.settings.locks)
	// The nodes have just started, and have forgotten nothing.
	if err := c.Admit(ctx); err != nil {
		return err
	}
	// The first lock opens the connections and loads the scripts: not part of what a lock costs.
	first, err := c.TryLock(ctx, "warm up")
	if err != nil {
		return err
	}
	if err := first.Unlock(ctx); err != nil {
		return err
	}
	m.before = used()
	few := max(m.settings.locks/100, 1)
	if err := m.take(ctx, c, 0, few); err != nil {
		return err
	}
	m.few = used()
	began := time.Now()
	if err := m.take(ctx, c, few, m.settings.locks); err != nil {
		return err
	}
	fmt.Fprintf(progress, "holding %d locks after %v\n", m.settings.locks,
		time.Since(began).Round(time.Millisecond))
	m.many = used()
	return nil
}

// take takes the locks from one index to another. Nobody else wants them: Lock rather than TryLock
// is for nodes that do not keep up for a moment.
func (m *measurement) take(ctx context.Context, c *redlock.Client, from, to int) error {
	ctx, cancel := context.WithTimeout(ctx, m.settings.ttl)
	defer cancel()
	var next atomic.Int64
	next.Store(int64(from))
	errs := make([]error, m.settings.callers)
	var wg sync.WaitGroup
	for caller := range m.settings.callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < to; i = int(next.Add(1)) - 1 {
				if m.locks[i], errs[caller] = c.Lock(ctx, lockName(i)); errs[caller] != nil {
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

// watch waits until each lock has been renewed as often as asked for, or should have been.
func (m *measurement) watch(progress io.Writer) {
	every := m.settings.ttl / 3
	began := time.Now()
	end := began.Add(time.Duration(m.settings.renewals)*every + m.settings.ttl/2)
	for n := 0; time.Now().Before(end) && m.ledger.lost.Load() == 0; n++ {
		time.Sleep(20 * time.Millisecond)
		m.most = max(m.most, runtime.NumGoroutine())
		if n%250 == 0 {
			least := m.ledger.leastRenewals()
			fmt.Fprintf(progress, "%v: each lock renewed at least %d times\n",
				time.Since(began).Round(time.Second), least)
			if least >= m.settings.renewals {
				break
			}
		}
	}
	m.watched = time.Since(began)
	m.cpu = cpuTime() - m.many.cpu
	for _, l := range m.locks {
		if l.Remaining() > 0 {
			m.held++
		}
	}
}
