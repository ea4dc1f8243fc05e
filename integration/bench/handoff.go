package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/integration/internal/monotonic"
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
	trip    time.Duration // of a lone PING, over the same way
	peers   []peer
	samples [][]handoffSample // by peer, by round
}

// A waitSample is what one round of waiting alone costs.
type waitSample struct {
	commands float64 // per waiter and second
	cores    float64 // of the processes that wait and hold
	err      error   // the first failure
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
// each; then what waiting costs.
func (r *results) measureHandoffs(ctx context.Context, s *stage, say progress) error {
	if err := r.measureTurns(ctx, s, say); err != nil {
		return err
	}
	return r.measureWaits(ctx, s, say)
}

// measureTurns measures the cells of one distance after those of another.
func (r *results) measureTurns(ctx context.Context, s *stage, say progress) error {
	byDelay := map[time.Duration][]handoffCell{}
	for _, cell := range r.form.handoffs {
		byDelay[cell.delay] = append(byDelay[cell.delay], cell)
	}
	for _, delay := range slices.Sorted(maps.Keys(byDelay)) {
		addrs := s.healthy[:usualNodes].Addrs()
		if delay > 0 {
			far, err := newDistance(addrs, delay)
			if err != nil {
				return err
			}
			defer far.close()
			addrs = far.addrs()
		}
		if err := r.measureTurnsAt(ctx, s, addrs, byDelay[delay], say); err != nil {
			return err
		}
	}
	return nil
}

// measureTurnsAt measures these cells on nodes that are reached at these addresses.
func (r *results) measureTurnsAt(
	ctx context.Context, s *stage, addrs []string, cells []handoffCell, say progress,
) (err error) {
	f := &r.form
	trip, err := roundTrip(ctx, addrs[0], 100, nil)
	if err != nil {
		return err
	}
	ps := passingPeers()
	crews := make([]*crew, len(ps))
	defer func() {
		for _, c := range crews {
			if c != nil {
				err = errors.Join(err, c.close())
			}
		}
	}()
	for i := range ps {
		crews[i], err = openCrew(ctx, &ps[i], addrs, clientsOf(cells), f.processes)
		if err != nil {
			return err
		}
	}
	if r.telling, err = crews[0].telling(ctx); err != nil {
		return err
	}
	results := make([]handoffResult, len(cells))
	for k, cell := range cells {
		results[k] = handoffResult{cell: cell, trip: trip, peers: ps,
			samples: make([][]handoffSample, len(ps))}
	}
	for round := range f.rounds {
		for k, cell := range cells {
			one := &results[k]
			for i := range ps {
				i = (i + round) % len(ps)
				h := &handoff{stage: s, crew: crews[i], name: ps[i].key("hand-off", one.cell, round)}
				sample, err := h.measure(ctx, one.cell, f.handoffSpan)
				if err != nil {
					return err
				}
				one.samples[i] = append(one.samples[i], sample)
			}
			say("hand-offs, round %d of %d: %v, %s", round+1, f.rounds, cell,
				inProcesses(f.processesOf(cell)))
		}
	}
	r.handoffs = append(r.handoffs, results...)
	return nil
}

// measureWaits measures what waiting costs, one library after the other, each alone: rueidis pings its
// connections also when nobody uses them, and the nodes' counts do not say who asked.
func (r *results) measureWaits(ctx context.Context, s *stage, say progress) error {
	if r.form.waiting == 0 {
		return nil
	}
	ps := waitingPeers()
	w := waitResult{waiters: r.form.waiting, peers: ps, samples: make([][]waitSample, len(ps))}
	for i := range ps {
		var err error
		if w.samples[i], err = r.waitsOf(ctx, s, &ps[i]); err != nil {
			return err
		}
		say("waiting: %d waiters, %s", w.waiters, ps[i].name)
	}
	r.waits = append(r.waits, w)
	return nil
}

// waitsOf are all rounds of one library.
func (r *results) waitsOf(ctx context.Context, s *stage, p *peer) (all []waitSample, err error) {
	f := &r.form
	c, err := openCrew(ctx, p, s.healthy[:usualNodes].Addrs(), f.waiting+1, f.processes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for range f.rounds {
		// One name: what is said of a round's name after it would count for the next.
		h := &handoff{stage: s, crew: c, name: p.key("waiting")}
		sample, err := h.measureWaiting(ctx, f.waiting, f.waitSpan)
		if err != nil {
			return all, err
		}
		all = append(all, sample)
	}
	return all, nil
}

// A handoff is one lock that goes from waiter to waiter, in several processes. Whoever has freed it
// asks for it again only after another has held it: a library whose waiters sleep cannot hand the
// lock from one caller to the same caller, and have that counted.
type handoff struct {
	stage *stage
	crew  *crew
	name  string
}

// errTogether is of holds of which one began before the other ended.
var errTogether = errors.New("two held it at once")

// measure lets the lock go round for about span, between one holder and the others, who wait.
func (h *handoff) measure(
	ctx context.Context, cell handoffCell, span time.Duration,
) (handoffSample, error) {
	nodes := h.stage.healthy[:usualNodes]
	if err := forgetCommands(ctx, nodes); err != nil {
		return handoffSample{}, err
	}
	began := monotonic.Now()
	shares := deal(cell.waiters+1, cell.clients, len(h.crew.members))
	if err := h.crew.begin(doTurns, h.name, shares); err != nil {
		return handoffSample{}, err
	}
	pause(ctx, span)
	ended := monotonic.Now()
	counted, err := countCommands(ctx, nodes)
	if err != nil {
		return handoffSample{}, err
	}
	log, err := h.crew.stop(ctx)
	if err != nil {
		return handoffSample{}, err
	}
	gaps, together := gapsOf(log.Holds, ended)
	s := handoffSample{perSecond: float64(len(gaps)) / time.Duration(ended-began).Seconds(),
		failed: log.Failed + int64(together), err: log.failure()}
	if together > 0 {
		s.err = errTogether
	}
	if len(gaps) > 0 {
		s.p50, s.p99 = quantile(gaps, 0.5), quantile(gaps, 0.99)
		s.commands = float64(counted.sent(h.crew.peer.plain)) / float64(len(gaps))
	}
	return s, nil
}

// measureWaiting is what waiters cost while one holds the lock all the time; the holder's renewals
// are in it. It is counted once all wait.
func (h *handoff) measureWaiting(
	ctx context.Context, waiters int, span time.Duration,
) (s waitSample, err error) {
	nodes := h.stage.healthy[:usualNodes]
	shares := deal(waiters+1, h.crew.clients, len(h.crew.members))
	if err := h.crew.begin(doHold, h.name, shares[:1]); err != nil {
		return s, err
	}
	if _, err := h.crew.members[0].answer(ctx, answerTime); err != nil {
		return s, err
	}
	if err := h.crew.begin(doWait, h.name, shares); err != nil {
		return s, err
	}
	pause(ctx, span/4)
	if err := forgetCommands(ctx, nodes); err != nil {
		return s, err
	}
	before, err := h.crew.used(ctx)
	if err != nil {
		return s, err
	}
	began := monotonic.Now()
	pause(ctx, span)
	took := time.Duration(monotonic.Now() - began).Seconds()
	after, err := h.crew.used(ctx)
	if err != nil {
		return s, err
	}
	counted, err := countCommands(ctx, nodes)
	if err != nil {
		return s, err
	}
	log, err := h.crew.stop(ctx)
	if err != nil {
		return s, err
	}
	return waitSample{cores: (after - before).Seconds() / took, err: log.failure(),
		commands: float64(counted.sent(h.crew.peer.plain)) / float64(waiters) / took}, nil
}

// failure is the first failure; nil: none.
func (w *watch) failure() error {
	if w.First == "" {
		return nil
	}
	return errors.New(w.First)
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

// p50 are a library's medians from Unlock to the next holder, by round; nil: it was not measured.
func (r *handoffResult) p50(library string) []time.Duration {
	for i, p := range r.peers {
		if p.name == library {
			return column(r.samples[i], func(s handoffSample) time.Duration { return s.p50 })
		}
	}
	return nil
}
