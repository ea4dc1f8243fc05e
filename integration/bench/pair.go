package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/bare"
	"github.com/quorumlock/quorumlock/internal/delay"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// A pairSample is what one round of one contestant came to.
type pairSample struct {
	perPair       time.Duration // of the clock, over all callers together
	allocs, bytes float64       // per pair, of the whole process
	commands      float64       // per pair, sent by clients, at all nodes together
	failed        int64
	err           error // the first failure
}

// A pairResult is all rounds of one cell.
type pairResult struct {
	cell    pairCell
	names   []string       // of the contestants, ours first
	redsync []bool         // by contestant: a way of redsync
	samples [][]pairSample // by contestant, by round
}

// work is what a contestant did in its span.
type work struct {
	pairs  float64
	failed int64
	err    error
}

// A contestant locks and unlocks distinct names, as many at once as there are callers.
type contestant struct {
	name    string
	redsync bool
	plain   []string
	nodes   redisproc.Nodes // that count its commands
	run     func(ctx context.Context, callers int, span time.Duration) work
	close   func() error
}

const (
	oursName = "quorumlock"
	bareName = "bare scripts"
	leanName = "bare scripts at a majority"
	waitName = "callers on bare scripts at a majority"
)

// oursIn is the name of ours on nodes with a trouble.
func oursIn(t trouble) string { return oursName + ", " + string(t) }

// measurePairs measures all cells of the form, in rounds, all contestants of a cell one after the
// other in each: what else happens on the machine meets all of them.
func measurePairs(
	ctx context.Context, s *stage, f *form, say progress,
) (all []pairResult, err error) {
	field := &field{stage: s}
	defer func() { err = errors.Join(err, field.close()) }()
	lineUps := make([][]*contestant, len(f.pairs))
	for i, cell := range f.pairs {
		if lineUps[i], err = field.lineUp(ctx, cell, f.oneNode); err != nil {
			return nil, err
		}
		all = append(all, newPairResult(cell, lineUps[i]))
	}
	for round := range f.rounds {
		for i, cell := range f.pairs {
			for k := range lineUps[i] {
				k = (k + round) % len(lineUps[i]) // nobody always goes first
				sample, err := measurePair(ctx, lineUps[i][k], cell.callers, f.pairSpan)
				if err != nil {
					return nil, err
				}
				all[i].samples[k] = append(all[i].samples[k], sample)
			}
			say("pairs, round %d of %d: %v", round+1, f.rounds, cell)
		}
	}
	return all, nil
}

func newPairResult(cell pairCell, lineUp []*contestant) pairResult {
	r := pairResult{cell: cell, samples: make([][]pairSample, len(lineUp))}
	for _, c := range lineUp {
		r.names = append(r.names, c.name)
		r.redsync = append(r.redsync, c.redsync)
	}
	return r
}

// A field has all contestants, each made once and used in several cells.
type field struct {
	stage *stage
	made  map[string]*contestant
}

// lineUp is who runs in a cell, ours first.
func (f *field) lineUp(ctx context.Context, cell pairCell, oneNode bool) ([]*contestant, error) {
	nodes := f.stage.healthy[:cell.nodes]
	var line []*contestant
	for _, p := range peers() {
		if p.passes || p.oneNode && (!oneNode || cell.nodes != usualNodes || cell.delay > 0) {
			continue // the number of nodes is nothing to them, and they take no dialer here
		}
		c, err := f.library(ctx, p, p.name, cell.place(), nodes, nodes, cell.dialer())
		if err != nil {
			return nil, err
		}
		line = append(line, c)
	}
	for _, c := range cell.ceilings(nodes) {
		one, err := f.ceiling(ctx, c, cell)
		if err != nil {
			return nil, err
		}
		line = append(line, one)
	}
	for _, t := range cell.troubles {
		nodes, answering := f.stage.in(t)
		dial := cell.dialer()
		if t.isSlow() {
			dial = slowTo(nodes[len(nodes)-t.nodes():].Addrs())
		}
		c, err := f.library(ctx, peers()[0], oursIn(t), cell.place(), nodes, answering, dial)
		if err != nil {
			return nil, err
		}
		line = append(line, c)
	}
	return line, nil
}

// place tells apart what a cell's contestants are made for.
func (c pairCell) place() string { return fmt.Sprintf("%d nodes, %v", c.nodes, c.delay) }

// dialer connects over the cell's network; nil: without delay.
func (c pairCell) dialer() dialer {
	if c.delay == 0 {
		return nil
	}
	return delay.New(c.delay/2, c.delay/2, seed).Dial
}

// slowTo connects to these nodes over a slow way, and to the others at once.
func slowTo(addrs []string) dialer {
	slow := delay.New(slowness/2, slowness/2, seed)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if slices.Contains(addrs, addr) {
			return slow.Dial(ctx, network, addr)
		}
		var plain net.Dialer
		return plain.DialContext(ctx, network, addr)
	}
}

// library makes a contestant of a library on some nodes, and lets it take a lock: that opens
// connections and fills the nodes' script caches.
func (f *field) library(ctx context.Context, p peer, name, place string,
	nodes, counting redisproc.Nodes, dial dialer,
) (*contestant, error) {
	return f.once(name+place, func() (*contestant, error) {
		c, err := p.open(ctx, p.addrs(nodes.Addrs()), dial)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		warm, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := pair(warm, c, p.key("warm up")); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), c.close())
		}
		return &contestant{name: name, redsync: p.redsync, plain: p.plain, nodes: counting,
			run: pairRunner(c, p, place), close: c.close}, nil
	})
}

// A ceiling is one of the ways to run the bare scripts.
type ceiling struct {
	name  string
	nodes redisproc.Nodes
	run   func(*bare.Scripts, context.Context, int, time.Duration) (float64, error)
}

// ceilings are those that the cell wants.
func (c pairCell) ceilings(nodes redisproc.Nodes) (all []ceiling) {
	most := nodes[:len(nodes)/2+1]
	if c.bare {
		all = append(all, ceiling{bareName, nodes, (*bare.Scripts).Run},
			ceiling{leanName, most, (*bare.Scripts).Run})
	}
	if c.bare || c.waits {
		all = append(all, ceiling{waitName, most, (*bare.Scripts).RunCallers})
	}
	return all
}

// ceiling makes a contestant of the bare scripts, over the cell's network.
func (f *field) ceiling(ctx context.Context, c ceiling, cell pairCell) (*contestant, error) {
	return f.once(c.name+cell.place(), func() (*contestant, error) {
		b, err := bare.Open(ctx, c.nodes.Addrs(), bare.Dialer(cell.dialer()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		work := func(ctx context.Context, callers int, span time.Duration) (w work) {
			w.pairs, w.err = c.run(b, ctx, callers, span)
			return w
		}
		return &contestant{name: c.name, nodes: c.nodes, run: work, close: b.Close}, nil
	})
}

// once makes a contestant on its first use in such a place.
func (f *field) once(key string, open func() (*contestant, error)) (*contestant, error) {
	if c := f.made[key]; c != nil {
		return c, nil
	}
	c, err := open()
	if err != nil {
		return nil, err
	}
	if f.made == nil {
		f.made = map[string]*contestant{}
	}
	f.made[key] = c
	return c, nil
}

func (f *field) close() error {
	var errs []error
	for _, c := range f.made {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// pair takes a lock that nobody else wants, and gives it back.
func pair(ctx context.Context, c client, name string) error {
	h, err := c.try(ctx, name)
	if err != nil {
		return err
	}
	return h.Unlock(ctx)
}

// pairRunner lets callers lock and unlock, each its own name, for about span. Names are of their
// place, too: what may be left of them elsewhere is not in the way.
func pairRunner(
	c client, p peer, place string,
) func(ctx context.Context, callers int, span time.Duration) work {
	return func(ctx context.Context, callers int, span time.Duration) work {
		var pairs, failed atomic.Int64
		var first sync.Once
		var w work
		began := time.Now()
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				// As many names as a service has, not a new one for each pair: registers stay.
				name := p.key("pair", place, callers, caller)
				for time.Since(began) < span && ctx.Err() == nil {
					if err := pair(ctx, c, name); err != nil {
						failed.Add(1)
						first.Do(func() { w.err = err })
						continue
					}
					pairs.Add(1)
				}
			})
		}
		wg.Wait()
		w.pairs, w.failed = float64(pairs.Load()), failed.Load()
		return w
	}
}

// settle is how long what a contestant does after its last pair counts as its own.
const settle = 20 * time.Millisecond

// measurePair is one round of one contestant. Its error says that the run cannot go on.
func measurePair(
	ctx context.Context, c *contestant, callers int, span time.Duration,
) (pairSample, error) {
	ctx, cancel := context.WithTimeout(ctx, span+time.Minute)
	defer cancel()
	if err := forgetCommands(ctx, c.nodes); err != nil {
		return pairSample{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	w := c.run(ctx, callers, span)
	took := time.Since(began)
	pause(ctx, settle)
	runtime.ReadMemStats(&after)
	counted, err := countCommands(ctx, c.nodes)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return pairSample{}, err
	}
	s := pairSample{failed: w.failed, err: w.err}
	if w.pairs > 0 {
		s.perPair = time.Duration(float64(took) / w.pairs)
		s.allocs = float64(after.Mallocs-before.Mallocs) / w.pairs
		s.bytes = float64(after.TotalAlloc-before.TotalAlloc) / w.pairs
		s.commands = float64(counted.sent(c.plain)) / w.pairs
	}
	return s, nil
}

// times are one contestant's times per pair, by round; none if it did not run.
func (r *pairResult) times(name string) []time.Duration {
	for i, n := range r.names {
		if n == name {
			return column(r.samples[i], func(s pairSample) time.Duration { return s.perPair })
		}
	}
	return nil
}

// redsyncBest are redsync's times per pair, in each round those of its faster way.
func (r *pairResult) redsyncBest() []time.Duration {
	var ways [][]time.Duration
	for i, is := range r.redsync {
		if is {
			ways = append(ways, r.times(r.names[i]))
		}
	}
	return best(ways...)
}

// toIdeal is how many times the ideal of a cell with added delay one contestant's time is: the
// median of the rounds.
func (r *pairResult) toIdeal(name string) (times float64, ok bool) {
	took, ideal := median(r.times(name)), r.cell.ideal()
	if took == 0 || ideal == 0 {
		return 0, false
	}
	return float64(took) / float64(ideal), true
}
