package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// An outageCell is one of five nodes dead or frozen for a span, under callers that lock and unlock
// all the time, and then back.
type outageCell struct {
	trouble trouble
	callers int
	span    time.Duration // of the outage; before it, a sixth of that is measured without
}

// looks is how often an outage is looked at, in equal steps.
const looks = 6

// An outageResult is what an outage came to.
type outageResult struct {
	cell           outageCell
	before, during float64 // pairs per second
	failed         int64   // pairs, before and during
	well           usage   // before
	first, last    usage   // at the first and the last look of the outage
	most           int     // goroutines at any look
	back           time.Duration
	err            error // the first failure
}

// measureOutages measures all outages, each on five nodes of its own.
func measureOutages(ctx context.Context, f *form, say progress) (all []outageResult, err error) {
	for _, cell := range f.outages {
		r, err := cell.measure(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s for %v: %w", cell.trouble, cell.span, err)
		}
		all = append(all, r)
		say("%s for %v", cell.trouble, cell.span)
	}
	return all, nil
}

func (o outageCell) measure(ctx context.Context) (r outageResult, err error) {
	nodes, err := startNodes(ctx, usualNodes)
	defer func() { err = errors.Join(err, nodes.Close()) }()
	if err != nil {
		return r, err
	}
	c, err := openOurs(ctx, nodes.Addrs(), nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	l := startLoad(ctx, c, o.callers)
	defer l.end()

	r.cell = o
	step := o.span / looks
	pause(ctx, settle) // the connections
	r.before = l.rate(ctx, step)
	r.well = usage{goroutines: runtime.NumGoroutine(), heap: liveHeap()}
	patient := nodes[len(nodes)-1]
	if err := o.trouble.befall(patient); err != nil {
		return r, err
	}
	from, began := l.pairs.Load(), time.Now()
	for look := range looks {
		pause(ctx, time.Until(began.Add(time.Duration(look+1)*step)))
		r.last = usage{goroutines: runtime.NumGoroutine(), heap: liveHeap()}
		if look == 0 {
			r.first = r.last
		}
		r.most = max(r.most, r.last.goroutines)
	}
	r.during = float64(l.pairs.Load()-from) / time.Since(began).Seconds()
	r.failed, r.err = l.failures()
	if err := o.recover(ctx, nodes, patient); err != nil {
		return r, err
	}
	r.back, err = fullVotes(ctx, c.(*ours))
	return r, errors.Join(err, ctx.Err())
}

// recover lets the node answer again. One that was dead has forgotten all, and would give no vote
// for the time of a TTL: it is admitted, as an operator may.
func (o outageCell) recover(
	ctx context.Context, nodes redisproc.Nodes, patient *redisproc.Node,
) error {
	if o.trouble == oneFrozen {
		return patient.Thaw()
	}
	if err := patient.Restart(true); err != nil {
		return err
	}
	return admit(ctx, nodes.Addrs())
}

// fullVotes is how long it takes until a lock has the votes of all nodes.
func fullVotes(ctx context.Context, c *ours) (time.Duration, error) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for n := 0; ; n++ {
		all, err := votedByAll(ctx, c, fmt.Sprintf("%s/votes/%d", oursName, n))
		if all {
			return time.Since(began), nil
		}
		if ctx.Err() != nil {
			return 0, errors.Join(fmt.Errorf("no full votes within %v of the return", patience), err)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// votedByAll takes a new lock, gives its last votes a moment to arrive, and counts them.
func votedByAll(ctx context.Context, c *ours, name string) (all bool, err error) {
	l, err := c.client.TryLock(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	pause(ctx, settle)
	s, err := c.client.Inspect(ctx, name)
	return err == nil && s.Votes == s.Nodes, err
}

// liveHeap is what the heap holds after a collection.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// A load is callers that lock and unlock, each its own name, until it is ended.
type load struct {
	pairs, failed atomic.Int64
	cancel        context.CancelFunc
	callers       sync.WaitGroup

	mu  sync.Mutex // guards err
	err error      // the first failure
}

func startLoad(ctx context.Context, c client, callers int) *load {
	l := &load{}
	ctx, l.cancel = context.WithCancel(ctx)
	for caller := range callers {
		l.callers.Go(func() {
			name := fmt.Sprintf("%s/load/%d", oursName, caller)
			for ctx.Err() == nil {
				if err := pair(ctx, c, name); err == nil {
					l.pairs.Add(1)
				} else if ctx.Err() == nil {
					l.fail(err)
				}
			}
		})
	}
	return l
}

// rate is how many pairs a second there are over a span.
func (l *load) rate(ctx context.Context, span time.Duration) float64 {
	from, began := l.pairs.Load(), time.Now()
	pause(ctx, span)
	return float64(l.pairs.Load()-from) / time.Since(began).Seconds()
}

func (l *load) fail(err error) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *load) failures() (count int64, first error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed.Load(), l.err
}

// end ends the callers and waits for them.
func (l *load) end() {
	l.cancel()
	l.callers.Wait()
}
