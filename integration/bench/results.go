package main

import (
	"fmt"
	"time"
)

// results are what a run came to.
type results struct {
	form      form
	pairs     []pairResult
	handoffs  []handoffResult
	waits     []waitResult
	farTrip   time.Duration // of a lone PING with targetDelay added; 0: not measured
	telling   time.Duration // from one process of a hand-off to another, through this one
	elections []electionResult
	holdings  []holdingResult
	ticks     []tickResult
	outages   []outageResult
}

// pairsAt are the pairs on five nodes with so many callers, without delay; nil if they were not
// measured.
func (r *results) pairsAt(callers int) *pairResult {
	for i := range r.pairs {
		if c := r.pairs[i].cell; c.nodes == usualNodes && c.callers == callers && c.delay == 0 {
			return &r.pairs[i]
		}
	}
	return nil
}

// handoffsAt are the hand-offs with so many waiters, each with a client of its own, with so much added
// delay; nil if they were not measured.
func (r *results) handoffsAt(waiters int, delay time.Duration) *handoffResult {
	for i := range r.handoffs {
		if c := r.handoffs[i].cell; c.waiters == waiters && c.clients > waiters && c.delay == delay {
			return &r.handoffs[i]
		}
	}
	return nil
}

// failures are the first failure of each contestant that had any, a line each.
func (r *results) failures() []string {
	var all []string
	for _, c := range r.pairs {
		for i, name := range c.names {
			for _, s := range c.samples[i] {
				if s.err != nil {
					all = append(all, fmt.Sprintf("pairs, %v, %s: %v", c.cell, name, s.err))
					break
				}
			}
		}
	}
	for _, h := range r.handoffs {
		for i, p := range h.peers {
			for _, s := range h.samples[i] {
				if s.err != nil {
					all = append(all, fmt.Sprintf("hand-off, %v, %s: %v", h.cell, p.name, s.err))
					break
				}
			}
		}
	}
	for _, w := range r.waits {
		for i, p := range w.peers {
			for _, s := range w.samples[i] {
				if s.err != nil {
					all = append(all, fmt.Sprintf("waiting, %d waiters, %s: %v", w.waiters, p.name, s.err))
					break
				}
			}
		}
	}
	for _, e := range r.elections {
		for i, p := range e.peers {
			if err := e.tallies[i].err; err != nil {
				all = append(all, fmt.Sprintf("elections of %d, %s: %v", e.contenders, p.name, err))
			}
		}
	}
	for _, o := range r.outages {
		if o.err != nil {
			all = append(all, fmt.Sprintf("%s for %v: %v", o.cell.trouble, o.cell.span, o.err))
		}
	}
	return all
}

// bars are the ratios of the chart: how many times as fast ours is.
func (r *results) bars() []bar {
	wanted := map[int]float64{64: 10, 512: 12, 1: 1 / 0.75}
	var all []bar
	for _, c := range r.pairs {
		b := bar{label: fmt.Sprintf("%v: redsync's best", c.cell)}
		b.times, _ = ratio(c.times(oursName), c.redsyncBest())
		if c.cell.nodes == usualNodes && c.cell.delay == 0 {
			b.target = wanted[c.cell.callers]
		}
		all = append(all, b)
	}
	if c := r.pairsAt(512); c != nil && c.cell.bare {
		b := bar{label: "512 callers: the ceiling", target: 1 / 1.4}
		b.times, _ = ratio(c.times(oursName), c.times(bareName))
		all = append(all, b)
	}
	for _, h := range r.handoffs {
		b := bar{label: fmt.Sprintf("hand-offs, %v: redsync's best", h.cell)}
		b.times, _ = ratio(h.spans(0), h.redsyncBest())
		if h.cell == (handoffCell{16, 17, 0}) {
			b.target = 50
		}
		all = append(all, b)
	}
	return all
}
