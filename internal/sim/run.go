package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/door"
)

// Run runs the schedule of a seed, in the bubble of the caller, adds to counts, and returns what
// was wrong, and the events that led to it; nil if nothing was.
func Run(seed uint64, counts *Counts) []string { return NewPlan(seed).Run(counts) }

// Run runs the plan.
func (plan *Plan) Run(counts *Counts) []string {
	w, err := newWorld(plan, counts)
	if err != nil {
		return []string{fmt.Sprintf("plan %+v: %v", *plan, err)}
	}
	w.run()
	counts.Schedules.Add(1)
	counts.Events.Add(w.events.Load())
	for _, c := range w.clients {
		from := door.Engine(c.Client).Counters()
		counts.Splits.Add(from.Splits.Load())
		counts.Yields.Add(from.Yields.Load())
		counts.Plants.Add(from.Plants.Load())
		counts.Raises.Add(from.Raises.Load())
		counts.Late.Add(from.Late.Load())
		counts.Repeats.Add(from.Repeats.Load())
	}
	if lines := w.watch.report(); lines != nil {
		return append([]string{fmt.Sprintf("plan %+v", *plan)}, lines...)
	}
	return nil
}

// settle is within which time of fair weather all that was to be freed is free: a probe finds the
// node within half a second, and what it owes is paid at most a second later, twice where an
// earlier message may still have been on its way.
const settle = 4 * time.Second

// settle frees what is still held and sees that all keys go long before their ends. Where a
// message can come again after everything about it was answered, it brings keys that only the TTL
// ends: nobody can know of them.
func (w *world) settle() {
	for _, l := range w.watch.locks() {
		_ = l.Unlock(context.Background())
	}
	if w.Wild || w.TTL < 2*settle {
		return
	}
	time.Sleep(settle)
	w.watch.NoLocks(w.nodes, "when all was freed")
}

// finish closes all clients and sees that nothing is left of them.
func (w *world) finish() {
	began := time.Now()
	for _, c := range w.clients {
		began := time.Now()
		if err := c.Close(); err != nil {
			w.watch.note(c.name, "close", err)
		}
		if took := time.Since(began); took > 4*w.NodeTimeout {
			w.watch.violation("%s: Close took %v, NodeTimeout is %v", c.name, took, w.NodeTimeout)
		}
	}
	w.watch.Look()
	// Longer than any message can be on its way, and any key can live after it.
	time.Sleep(4*w.TTL + 2*time.Second + w.afterAmnesia() - time.Since(began))
	w.watch.NoLocks(w.nodes, "long after the end")
	w.watch.Keys(w.nodes)
	w.again()
}

// again checks that every name can be had by a newcomer, with a larger token, and that nothing is
// left of it.
func (w *world) again() {
	c, err := w.newClient("newcomer")
	if err != nil {
		w.watch.violation("%v", err)
		return
	}
	// A node that forgot last, and was not spoken to since, makes a newcomer wait.
	ctx, cancel := context.WithTimeout(context.Background(), 2*w.TTL+time.Second+w.afterAmnesia())
	defer cancel()
	for name := range w.watch.names {
		l, err := c.Lock(ctx, name)
		if err != nil {
			w.watch.violation("at the end %q cannot be had: %v", name, err)
			continue
		}
		w.watch.won(l, c.name, w.TTL)
		if err := l.Unlock(ctx); err != nil {
			w.watch.violation("at the end %q cannot be freed: %v", name, err)
		}
	}
	if err := c.Close(); err != nil {
		w.watch.violation("at the end the client cannot be closed: %v", err)
	}
	w.watch.NoLocks(w.nodes, "after a newcomer's Unlock and Close")
}
