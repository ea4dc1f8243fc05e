package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A handoffSample is what one round of one library with one number of waiters came to.
type handoffSample struct {
	perSecond float64
	p50, p99  time.Duration // from the call of Unlock to the next holder's return from Lock
	commands  float64       // per hand-off, sent by clients, at all nodes together
	failed    int64
	err       error // the first failure
}

// A handoffResult is all rounds of one cell.
type handoffResult struct {
	cell    handoffCell
	peers   []peer
	samples [][]handoffSample // by peer, by round
}

// A waitSample is what one round of waiting alone costs.
type waitSample struct {
	commands float64 // per waiter and second
	cores    float64 // of this process
}

// A waitResult is all rounds of one number of waiters.
type waitResult struct {
	waiters int
	peers   []peer
	samples [][]waitSample // by peer, by round
}

// commands are one library's commands per waiter and second, by round.
func (w *waitResult) commands(peer int) []float64 {
	return column(w.samples[peer], func(s waitSample) float64 { return s.commands })
}

// measureHandoffs measures all cells of the form, in rounds, all libraries one after the other in
// each; and what waiting costs.
func measureHandoffs(
	ctx context.Context, s *stage, f *form, say progress,
) (all []handoffResult, waits []waitResult, err error) {
	ps := waitingPeers()
	crews := make([][]client, len(ps))
	defer func() {
		for _, c := range slices.Concat(crews...) {
			err = errors.Join(err, c.close())
		}
	}()
	addrs := s.healthy[:usualNodes].Addrs()
	for i, p := range ps {
		if crews[i], err = openCrew(ctx, &p, addrs, f.clients()); err != nil {
			return nil, nil, err
		}
	}
	for _, cell := range f.handoffs {
		all = append(all, handoffResult{cell: cell, peers: ps,
			samples: make([][]handoffSample, len(ps))})
	}
	if f.waiting > 0 {
		waits = append(waits, waitResult{waiters: f.waiting, peers: ps,
			samples: make([][]waitSample, len(ps))})
	}
	for round := range f.rounds {
		for _, r := range all {
			for i := range ps {
				i = (i + round) % len(ps)
				name := ps[i].key("hand-off", r.cell, round)
				h := &handoff{stage: s, peer: &ps[i], crew: crews[i][:r.cell.clients], name: name}
				sample, err := h.measure(ctx, r.cell.waiters, f.handoffSpan)
				if err != nil {
					return nil, nil, err
				}
				r.samples[i] = append(r.samples[i], sample)
			}
			say("hand-offs, round %d of %d: %d waiters, %d clients", round+1, f.rounds, r.cell.waiters,
				r.cell.clients)
		}
		for _, w := range waits {
			for i := range ps {
				i = (i + round) % len(ps)
				name := ps[i].key("waiting", round)
				h := &handoff{stage: s, peer: &ps[i], crew: crews[i], name: name}
				sample, err := h.measureWaiting(ctx, w.waiters, f.waitSpan)
				if err != nil {
					return nil, nil, err
				}
				w.samples[i] = append(w.samples[i], sample)
			}
			say("waiting, round %d of %d: %d waiters", round+1, f.rounds, w.waiters)
		}
	}
	return all, waits, nil
}

// openCrew opens a library's clients, and lets each take a lock so that it knows the nodes.
//
// A client has connections of its own and shares nothing with the others, as processes do.
func openCrew(
	ctx context.Context, p *peer, addrs []string, count int,
) (crew []client, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := range count {
		c, err := p.open(ctx, p.addrs(addrs), nil)
		if err != nil {
			return crew, fmt.Errorf("%s: %w", p.name, err)
		}
		crew = append(crew, c)
		if err := pair(ctx, c, p.key("warm up", i)); err != nil {
			return crew, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return crew, nil
}

// A handoff is one lock that goes from waiter to waiter. Whoever has freed it asks for it again
// only after another has held it: a library whose waiters sleep cannot hand the lock from one
// caller to the same caller, and have that counted.
type handoff struct {
	stage *stage
	peer  *peer
	crew  []client
	name  string

	failed atomic.Int64

	mu      sync.Mutex // guards what follows
	next    chan struct{}
	freedAt time.Time // when the last holder began to free; zero: nobody has
	gaps    []time.Duration
	err     error
}

// measure lets the lock go round for about span, between one holder and the others, who wait.
func (h *handoff) measure(
	ctx context.Context, waiters int, span time.Duration,
) (handoffSample, error) {
	nodes := h.stage.healthy[:usualNodes]
	h.next = make(chan struct{})
	if err := forgetCommands(ctx, nodes); err != nil {
		return handoffSample{}, err
	}
	turn, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range waiters + 1 {
		wg.Go(func() { h.takeTurns(turn, h.crew[i%len(h.crew)]) })
	}
	<-turn.Done()
	h.mu.Lock()
	gaps, took := slices.Clone(h.gaps), time.Since(began)
	h.mu.Unlock()
	counted, err := countCommands(ctx, nodes)
	wg.Wait()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return handoffSample{}, err
	}
	s := handoffSample{perSecond: float64(len(gaps)) / took.Seconds(), failed: h.failed.Load(),
		err: h.err}
	if len(gaps) > 0 {
		s.p50, s.p99 = quantile(gaps, 0.5), quantile(gaps, 0.99)
		s.commands = float64(counted.sent(h.peer.plain)) / float64(len(gaps))
	}
	return s, nil
}

// takeTurns waits for the lock, frees it at once, and waits again, until ctx ends.
func (h *handoff) takeTurns(ctx context.Context, c client) {
	for ctx.Err() == nil {
		l, err := c.lock(ctx, h.name)
		if err != nil {
			if ctx.Err() == nil {
				h.fail(err)
				pause(ctx, time.Millisecond)
			}
			continue
		}
		next := h.got()
		if err := freeLock(ctx, l); err != nil && ctx.Err() == nil {
			h.fail(err)
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// got notes that somebody holds the lock, and frees it now. What it returns is closed when another
// holds it.
func (h *handoff) got() <-chan struct{} {
	at := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.freedAt.IsZero() {
		h.gaps = append(h.gaps, at.Sub(h.freedAt))
	}
	close(h.next)
	h.next = make(chan struct{})
	h.freedAt = time.Now()
	return h.next
}

func (h *handoff) fail(err error) {
	h.failed.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
}

// freeLock frees also when the time is up, in bounded time.
func freeLock(ctx context.Context, l held) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return l.Unlock(ctx)
}

// measureWaiting is what waiters cost while one holds the lock all the time; the holder's renewals
// are in it. It is counted once all wait.
func (h *handoff) measureWaiting(
	ctx context.Context, waiters int, span time.Duration,
) (s waitSample, err error) {
	nodes := h.stage.healthy[:usualNodes]
	taking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := h.crew[0].lock(taking, h.name)
	if err != nil {
		return s, fmt.Errorf("%s: %w", h.peer.name, err)
	}
	defer func() { err = errors.Join(err, freeLock(ctx, l)) }()
	turn, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for i := range waiters {
		wg.Go(func() {
			// Nobody gets it; who does all the same gives it back.
			if l, err := h.crew[(i+1)%len(h.crew)].lock(turn, h.name); err == nil {
				_ = freeLock(turn, l)
			}
		})
	}
	pause(ctx, span/4)
	if err := forgetCommands(ctx, nodes); err != nil {
		return s, err
	}
	began, cpu := time.Now(), cpuTime()
	pause(ctx, span)
	s.cores = (cpuTime() - cpu).Seconds() / time.Since(began).Seconds()
	counted, err := countCommands(ctx, nodes)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return s, err
	}
	s.commands = float64(counted.sent(h.peer.plain)) / float64(waiters) / time.Since(began).Seconds()
	return s, nil
}

// spans are one library's seconds per hand-off, by round; zero for a round without any.
func (r *handoffResult) spans(peer int) []float64 {
	return column(r.samples[peer], func(s handoffSample) float64 {
		if s.perSecond == 0 {
			return 0
		}
		return 1 / s.perSecond
	})
}

// redsyncBest are redsync's seconds per hand-off, in each round those of its faster way.
func (r *handoffResult) redsyncBest() []float64 {
	var ways [][]float64
	for i, p := range r.peers {
		if p.redsync {
			ways = append(ways, r.spans(i))
		}
	}
	return best(ways...)
}

// p50 are the medians from Unlock to the next holder, by round.
func (r *handoffResult) p50(peer int) []time.Duration {
	return column(r.samples[peer], func(s handoffSample) time.Duration { return s.p50 })
}
