package main

import (
	"fmt"
	"math"
	"time"
)

// A target is what the project wants of a number, and what the number came to.
type target struct {
	claim string
	got   float64
	known bool // false: the run had nothing to say about it
	limit float64
	least bool // the limit is the least, else the most
	show  func(float64) string
	bound string // what the nodes or the way to them allow in this run; "": not known
}

// within says what bounds the target, after what was said before.
func (t target) within(bound float64, known bool, why string) target {
	if !known {
		return t
	}
	if t.bound != "" {
		t.bound += "; "
	}
	t.bound += t.show(bound) + ": " + why
	return t
}

// verdict says it in one of three ways.
func (t *target) verdict() string {
	switch {
	case !t.known:
		return "not measured"
	case t.least && t.got >= t.limit, !t.least && t.got <= t.limit:
		return "reached"
	}
	return "not reached"
}

// measuredAs is the number as text.
func (t *target) measuredAs() string {
	if !t.known {
		return "-"
	}
	return t.show(t.got)
}

// atLeast and atMost are targets from a number that may not be known.
func atLeast(claim string, limit, got float64, known bool, show func(float64) string) target {
	return target{claim: claim, limit: limit, least: true, got: got, known: known, show: show}
}

func atMost(claim string, limit, got float64, known bool, show func(float64) string) target {
	return target{claim: claim, limit: limit, got: got, known: known, show: show}
}

func plainNumber(v float64) string {
	if v == math.Trunc(v) || v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// targets judges all that the results cover.
func (r *results) targets() []target {
	all := r.pairTargets()
	all = append(all, r.handoffTargets()...)
	all = append(all, r.electionTargets()...)
	all = append(all, r.holdingTargets()...)
	all = append(all, r.tickTargets()...)
	return append(all, r.outageTargets()...)
}

// What bounds lock + unlock: under load a majority of the nodes may be enough.
const (
	alone   = "the bare scripts at all nodes, without any library"
	leanly  = "the bare scripts at a majority, without any library"
	waiting = "waiting for the scripts at a majority, with nothing decided, remembered or timed"
)

// evenThat says of a bound on which side of the target's limit it is.
func evenThat(within bool, limit string) string {
	if within {
		return "; that alone is within " + limit
	}
	return "; even that is above " + limit
}

// targetDelay is the added delay that there are targets for.
const targetDelay = 20 * time.Millisecond

// pairTargets judges lock + unlock on five nodes, and the ceiling.
func (r *results) pairTargets() []target {
	var all []target
	for _, want := range []struct {
		callers int
		times   float64
	}{{64, 10}, {512, 12}} {
		if c := r.pairsAt(want.callers); c != nil {
			got, ok := ratio(c.times(oursName), c.redsyncBest())
			lean, bare := ratio(c.times(leanName), c.redsyncBest())
			called, batched := ratio(c.times(waitName), c.redsyncBest())
			all = append(all, atLeast(fmt.Sprintf("%d callers: at least %gx redsync's best",
				want.callers, want.times), want.times, got, ok, times).
				within(lean, bare, leanly).within(called, batched, waiting))
		}
	}
	if c := r.pairsAt(1); c != nil {
		got, ok := ratio(c.redsyncBest(), c.times(oursName))
		bare, measured := ratio(c.redsyncBest(), c.times(bareName))
		called, batched := ratio(c.redsyncBest(), c.times(waitName))
		all = append(all, atMost("1 caller: at most 0.75x of redsync's best latency", 0.75, got, ok,
			times).within(bare, measured, alone).
			within(called, batched, waiting+evenThat(called <= 0.75, "0.75x")))
	}
	for _, c := range r.pairs {
		if c.cell.delay == targetDelay {
			limit := 1.35
			if c.cell.callers == 1 {
				limit = 1.05
			}
			got, ok := c.toIdeal(oursName)
			far := float64(r.farTrip) / float64(targetDelay)
			called, batched := c.toIdeal(waitName)
			all = append(all, atMost(fmt.Sprintf("%s, %v of added delay: at most %gx the ideal",
				countOf(c.cell.callers, "caller"), targetDelay, limit), limit, got, ok, times).
				within(far, r.farTrip > 0, "two lone PINGs, one after the other, over the same delay").
				within(called, batched, waiting))
		}
		for _, t := range c.cell.troubles {
			if t.nodes() > 1 || t.isSlow() {
				continue // there is no target for it
			}
			got, ok := ratio(c.times(oursName), c.times(oursIn(t)))
			all = append(all, atMost(fmt.Sprintf("%d callers, %s: at most 1.10x of the time without",
				c.cell.callers, t), 1.10, got, ok, times))
		}
	}
	if c := r.pairsAt(512); c != nil && c.cell.bare {
		got, ok := ratio(c.times(bareName), c.times(oursName))
		all = append(all, atMost("512 callers: within 1.4x of the ceiling", 1.4, got, ok, times))
	}
	if c := r.pairsAt(64); c != nil {
		ours := c.samples[0]
		allocs := median(column(ours, func(s pairSample) float64 { return s.allocs }))
		bytes := median(column(ours, func(s pairSample) float64 { return s.bytes }))
		all = append(all,
			atMost("64 callers: at most 40 allocations per pair", 40, allocs, allocs > 0, plainNumber),
			atMost("64 callers: at most 3 KB (3,000 bytes) per pair", 3000, bytes, bytes > 0,
				plainNumber))
	}
	return all
}

// handoffTargets judges hand-offs and waiting.
func (r *results) handoffTargets() []target {
	var all []target
	if h := r.handoffsAt(16, 0); h != nil {
		got, ok := ratio(h.spans(0), h.redsyncBest())
		least := 2 * float64(h.trip) / float64(time.Second) // to free and to take
		all = append(all, atLeast("16 waiters: at least 50x redsync's hand-offs per second", 50, got,
			ok, times).within(median(h.redsyncBest())/max(least, 1e-9), ok && least > 0,
			"two round trips of a lone PING"))
	}
	for _, delay := range []time.Duration{0, handoffDelay} {
		if h := r.handoffsAt(16, delay); h != nil {
			all = append(all, h.besideRueidislock(oursName))
		}
		if h := r.handoffsAt(16, delay); h != nil && delay == 0 {
			all = append(all, h.besideRueidislock(oursOneName))
		}
	}
	if h := r.handoffsAt(2, 0); h != nil && h.trip > 0 {
		slowest := median(column(h.samples[0], func(s handoffSample) float64 { return float64(s.p99) }))
		all = append(all, atMost("2 waiters: p99 from Unlock to the next holder below 5 round trips"+
			" (of a lone PING)", 5, slowest/float64(h.trip), slowest > 0, plainNumber).
			within(r.leastHandoff(h.trip), r.leastHandoff(h.trip) > 0,
				"a caller alone, "+waiting+", to free and to take"))
	}
	for _, w := range r.waits {
		got := median(w.commands(0))
		all = append(all, atMost(fmt.Sprintf("%d waiters: under 1 command per waiter and second",
			w.waiters), 1, got, len(w.samples[0]) > 0, plainNumber))
	}
	return all
}

// leastHandoff is what freeing and taking take a caller alone who waits for the scripts at a majority,
// in round trips; 0: not known.
func (r *results) leastHandoff(trip time.Duration) float64 {
	c := r.pairsAt(1)
	if c == nil {
		return 0
	}
	return float64(median(c.times(waitName))) / float64(trip)
}

// besideRueidislock judges how soon a lock is passed on. On loopback that is what the processors have
// to do for it, at five nodes and at one, so there one node is beside one, too; from afar it is the
// round trips.
func (h *handoffResult) besideRueidislock(ours string) target {
	way := "on loopback, five nodes to its one"
	switch {
	case h.cell.delay > 0:
		way = fmt.Sprintf("with %v of added delay, five nodes to its one", h.cell.delay)
	case ours == oursOneName:
		way = "on loopback, one node to its one"
	}
	got, known := ratio(h.p50(rueidislockName), h.p50(ours))
	return atMost(fmt.Sprintf("%d waiters: median from Unlock to the next holder at most rueidislock's, %s",
		h.cell.waiters, way), 1, got, known, times)
}

// electionTargets judges elections.
func (r *results) electionTargets() []target {
	held, none, several := 0, 0, 0
	for _, e := range r.elections {
		held += e.tallies[0].elections
		none += e.tallies[0].none
		several += e.tallies[0].several
	}
	if held == 0 {
		return nil
	}
	return []target{
		atMost(fmt.Sprintf("%d elections: none without a winner", held), 0, float64(none), true,
			plainNumber),
		atMost(fmt.Sprintf("%d elections: none with two winners", held), 0, float64(several), true,
			plainNumber),
	}
}

// strayGoroutines is how many more goroutines there may be at rest with all locks than with a
// hundredth of them: connections that a burst opened, not something that grows.
const strayGoroutines = 100

// holdingTargets judges held locks, where there are enough of them.
func (r *results) holdingTargets() []target {
	var all []target
	for _, h := range r.holdings {
		if h.locks < 100_000 {
			continue
		}
		prefix := fmt.Sprintf("%d held locks: ", h.locks)
		all = append(all,
			atMost(prefix+"under 1 KB (1,000 bytes) each", 1000, h.bytes, true, plainNumber),
			atMost(prefix+"no goroutine of their own (at most 100 more than with a hundredth of them)",
				strayGoroutines, float64(h.goroutines), true, plainNumber),
			atMost(prefix+"none lost or without validity", 0, float64(h.locks-h.held), true, plainNumber),
			atMost(prefix+"renewed with under one core", 1, h.cores, h.cores > 0, plainNumber))
	}
	return all
}

// tickTargets judges the ticks of 5,000 jobs on three replicas.
func (r *results) tickTargets() []target {
	var all []target
	for _, t := range r.ticks {
		if t.name != oursName || t.cell != (tickCell{3, 5000}) {
			continue
		}
		wrong := 0
		for _, s := range t.samples {
			wrong += s.missing + s.repeated
		}
		slowest := median(column(t.samples, func(s tickSample) float64 { return s.took.Seconds() }))
		all = append(all,
			atMost("5,000 jobs on one instant, 3 replicas: all run within 3 s (seconds)", 3, slowest,
				len(t.samples) > 0, plainNumber),
			atMost("5,000 jobs on one instant, 3 replicas: none missing or repeated", 0, float64(wrong),
				len(t.samples) > 0, plainNumber))
	}
	return all
}

// outageTargets judges nodes that are gone for a while and come back. Flat memory is that the last
// look finds at most a tenth more than the first one after the node was gone.
func (r *results) outageTargets() []target {
	var all []target
	for _, o := range r.outages {
		prefix := fmt.Sprintf("%s for %v under %d callers: ", o.cell.trouble, o.cell.span,
			o.cell.callers)
		all = append(all,
			atMost(prefix+"at most 100 more goroutines", strayGoroutines,
				float64(o.most-o.well.goroutines), true, plainNumber),
			atMost(prefix+"heap at its end at most 1.1x of that after a sixth", 1.1,
				float64(o.last.heap)/float64(max(o.first.heap, 1)), true, times),
			atLeast(prefix+"at least 0.9x of the throughput before", 0.9, o.during/max(o.before, 1),
				o.before > 0, times),
			atMost(prefix+"full votes within a second of its return (seconds)", 1, o.back.Seconds(),
				o.back > 0, plainNumber))
	}
	return all
}
