package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/integration"
)

// A fault is what was done to whom, and when.
type fault struct {
	what     string
	node     int // -1: a replica's
	replica  int // -1: a node's
	count    int // of nodes that it struck, from node on
	majority bool
	from, to time.Time
}

// A misfortune is one kind of fault.
type misfortune struct {
	what     string
	replica  bool // it strikes a replica, or one replica's ways
	count    int  // of nodes, from one on
	majority bool // of the nodes
	begin    func(s *stage, i int) error
	end      func(s *stage, i int) error
}

type node = integration.Node

// some does it to count nodes, beginning with node i.
func some(count int, do func(*node) error) func(*stage, int) error {
	return func(s *stage, i int) error {
		var errs []error
		for k := range count {
			errs = append(errs, do(s.cluster.Nodes[(i+k)%nodes]))
		}
		return errors.Join(errs...)
	}
}

// ways does it to count of a replica's ways.
func ways(count int, do func(*integration.Way) error) func(*stage, int) error {
	return func(s *stage, i int) error {
		var errs []error
		for _, w := range s.ways[i][:count] {
			errs = append(errs, do(w))
		}
		return errors.Join(errs...)
	}
}

func tell(what os.Signal) func(*stage, int) error {
	return func(s *stage, i int) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.actors[i].cmd.Process.Signal(what)
	}
}

// misfortunes: on nodes, on replicas and their ways. One node's clock is stepped, never a majority's.
var misfortunes = []misfortune{
	{what: "killed, back empty", count: 2, begin: some(2, (*node).Kill), end: some(2, (*node).StartEmpty)},
	{what: "frozen", count: 2, begin: some(2, (*node).Pause), end: some(2, (*node).Unpause)},
	{what: "clock an hour ahead, and back", count: 1, begin: step(time.Hour), end: step(-time.Hour)},
	{what: "clock 3 s behind, and right", count: 1, begin: step(-3 * time.Second), end: step(3 * time.Second)},
	{what: "majority killed, back empty", count: 3, majority: true, begin: some(3, (*node).Kill),
		end: some(3, (*node).StartEmpty)},
	{what: "majority frozen", count: 3, majority: true, begin: some(3, (*node).Pause), end: some(3, (*node).Unpause)},
	{what: "killed, started anew", replica: true, begin: tell(syscall.SIGKILL),
		end: func(s *stage, i int) error { return s.startReplica(i) }},
	{what: "frozen", replica: true, begin: tell(syscall.SIGSTOP), end: tell(syscall.SIGCONT)},
	{what: "cut from three nodes", replica: true, begin: ways(3, (*integration.Way).Cut),
		end: ways(3, (*integration.Way).Heal)},
	{what: "loses three nodes' replies", replica: true, begin: ways(3, (*integration.Way).LoseReplies),
		end: ways(3, (*integration.Way).Heal)},
	{what: "slow ways", replica: true, begin: ways(nodes, func(w *integration.Way) error {
		return w.Slow(60*time.Millisecond, 30*time.Millisecond)
	}), end: ways(nodes, (*integration.Way).Heal)},
}

func step(d time.Duration) func(*stage, int) error {
	return some(1, func(n *node) error { return n.StepClock(d) })
}

// trouble lets one misfortune after the other happen until it is time, with rests in which all has to
// be well again. A line tells of each.
func (s *stage) trouble(ctx context.Context, from, until time.Time) {
	if sleepUntil(ctx, from.Add(3*time.Second)) != nil {
		return
	}
	var order []int
	for time.Until(until) > 10*time.Second && ctx.Err() == nil {
		if len(order) == 0 {
			order = s.dice.Perm(len(misfortunes))
		}
		if err := s.strike(ctx, misfortunes[order[0]], from); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			return
		}
		order = order[1:]
	}
}

// strike makes one misfortune, and then lets everything recover.
func (s *stage) strike(ctx context.Context, m misfortune, from time.Time) error {
	f := fault{what: m.what, node: -1, replica: -1, count: m.count, majority: m.majority}
	whom := s.dice.IntN(nodes)
	f.node = whom
	if m.replica {
		whom = s.dice.IntN(replicas)
		f.node, f.replica = -1, whom
	}
	f.from = time.Now()
	if err := m.begin(s, whom); err != nil {
		return err
	}
	_ = sleepUntil(ctx, time.Now().Add(time.Second+time.Duration(s.dice.Int64N(int64(2*time.Second)))))
	if err := m.end(s, whom); err != nil {
		return err
	}
	f.to = time.Now()
	s.mu.Lock()
	s.faults = append(s.faults, f)
	runs := 0
	for _, r := range s.records {
		if r.Kind == "run" {
			runs++
		}
	}
	s.mu.Unlock()
	fmt.Printf("soak: %4.0f s  %4d ticks run  %s: %s\n", time.Since(from).Seconds(), runs, f.whom(), f.what)
	// Longer than a fault has effects, so that each missed tick is one fault's.
	return sleepUntil(ctx, time.Now().Add(recovery+2*time.Second))
}

func (f fault) whom() string {
	if f.replica >= 0 {
		return fmt.Sprintf("replica %d", f.replica+1)
	}
	return fmt.Sprintf("node %d", f.node+1)
}
