package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/integration"
)

// A fault is what was done to whom, and when.
type fault struct {
	what     string
	nodes    []int  // that it struck; none: a replica's
	replica  int    // -1: nodes'
	process  string // the replica's, by the name that it had
	stops    bool   // the process stands still, or is gone
	onWays   bool   // it strikes the replica's ways to nodes
	from, to time.Time
}

// What a misfortune strikes.
type target int

const (
	ofNodes   target = iota
	ofProcess        // a replica that does nothing while it lasts
	ofWays           // one replica's ways to nodes
	ofClock          // a replica's clock
)

// A misfortune is one kind of fault.
type misfortune struct {
	what   string
	target target
	count  int // of nodes, from one on
	begin  func(s *stage, i int) error
	end    func(s *stage, i int) error
}

type (
	node = integration.Node
	way  = integration.Way
)

// some does it to count nodes, beginning with node i.
func some(count int, do func(*node) error) func(*stage, int) error {
	return func(s *stage, i int) error {
		errs := make([]error, count)
		var doing sync.WaitGroup // at once: they are to be struck together
		for k := range count {
			doing.Go(func() { errs[k] = do(s.cluster.Nodes[(i+k)%nodes]) })
		}
		doing.Wait()
		return errors.Join(errs...)
	}
}

// everybodys does it to all replicas' ways to count nodes, beginning with node i.
func everybodys(count int, do func(*way) error) func(*stage, int) error {
	return func(s *stage, i int) error {
		var errs []error
		for k := range count {
			for _, ways := range s.ways {
				errs = append(errs, do(ways[(i+k)%nodes]))
			}
		}
		return errors.Join(errs...)
	}
}

// own does it to count of a replica's ways.
func own(count int, do func(*way) error) func(*stage, int) error {
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

// step steps a node's clock.
func step(d time.Duration) func(*stage, int) error {
	return some(1, func(n *node) error { return n.StepClock(d) })
}

// skew sets a replica's clock wrong by so much more than it stands at.
func skew(d time.Duration) func(*stage, int) error {
	return func(s *stage, i int) error { return s.setClock(i, d) }
}

func slowDown(w *way) error { return w.Slow(60*time.Millisecond, 30*time.Millisecond) }

// misfortunes: on nodes, on replicas and their ways. Of the nodes one clock is stepped, never a
// majority's: a tick has no other time than theirs.
var misfortunes = []misfortune{
	{"killed, back empty", ofNodes, 2, some(2, (*node).Kill), some(2, (*node).StartEmpty)},
	{"frozen", ofNodes, 2, some(2, (*node).Pause), some(2, (*node).Unpause)},
	{"cut off", ofNodes, 2, everybodys(2, (*way).Cut), everybodys(2, (*way).Heal)},
	{"clock an hour ahead, and back", ofNodes, 1, step(time.Hour), step(-time.Hour)},
	{"clock 3 s behind, and right", ofNodes, 1, step(-3 * time.Second), step(3 * time.Second)},
	{"majority killed, back empty", ofNodes, 3, some(3, (*node).Kill), some(3, (*node).StartEmpty)},
	{"majority frozen", ofNodes, 3, some(3, (*node).Pause), some(3, (*node).Unpause)},
	{"majority cut off", ofNodes, 3, everybodys(3, (*way).Cut), everybodys(3, (*way).Heal)},
	{"killed, started anew", ofProcess, 0, tell(syscall.SIGKILL), (*stage).startReplica},
	{"frozen", ofProcess, 0, tell(syscall.SIGSTOP), tell(syscall.SIGCONT)},
	{"clock 5 s further ahead, and back", ofClock, 0, skew(5 * time.Second), skew(0)},
	{"clock an hour behind, and right", ofClock, 0, skew(-time.Hour), skew(0)},
	{"cut from three nodes", ofWays, 0, own(3, (*way).Cut), own(3, (*way).Heal)},
	{"loses three nodes' replies", ofWays, 0, own(3, (*way).LoseReplies), own(3, (*way).Heal)},
	{"slow ways", ofWays, 0, own(nodes, slowDown), own(nodes, (*way).Heal)},
}

// trouble lets one misfortune after the other happen until it is time, with rests in which all has
// to be well again. A line tells of each.
func (s *stage) trouble(ctx context.Context, from, until time.Time) error {
	if err := sleepUntil(ctx, from.Add(3*time.Second)); err != nil {
		return err
	}
	var order []int
	for time.Until(until) > 10*time.Second {
		if len(order) == 0 {
			order = s.dice.Perm(len(misfortunes))
		}
		if err := s.strike(ctx, misfortunes[order[0]], from); err != nil {
			return err
		}
		order = order[1:]
	}
	return sleepUntil(ctx, until)
}

// strike makes one misfortune, and then lets everything recover.
func (s *stage) strike(ctx context.Context, m misfortune, from time.Time) error {
	f := fault{what: m.what, replica: -1, stops: m.target == ofProcess, onWays: m.target == ofWays}
	whom := s.dice.IntN(nodes)
	for k := range m.count {
		f.nodes = append(f.nodes, (whom+k)%nodes)
	}
	if m.target != ofNodes {
		whom = s.dice.IntN(replicas)
		s.mu.Lock()
		f.replica, f.process = whom, s.actors[whom].name
		s.mu.Unlock()
	}
	f.from = time.Now()
	if err := m.begin(s, whom); err != nil {
		return err
	}
	lasts := time.Second + time.Duration(s.dice.Int64N(int64(2*time.Second)))
	if err := sleepUntil(ctx, time.Now().Add(lasts)); err != nil {
		return err
	}
	if err := m.end(s, whom); err != nil {
		return err
	}
	f.to = time.Now()
	s.mu.Lock()
	s.faults = append(s.faults, f)
	s.mu.Unlock()
	fmt.Printf("soak: %4.0f s  %s\n", f.from.Sub(from).Seconds(), f)
	// Longer than a fault has effects, so that each missed tick is one fault's.
	return sleepUntil(ctx, time.Now().Add(recovery+2*time.Second))
}

// String tells of it with its times: "nodes 2, 3: frozen 12:00:01.2 to 12:00:03.4".
func (f fault) String() string {
	return fmt.Sprintf("%s: %s, %s to %s", f.whom(), f.what, moment(f.from), moment(f.to))
}

func (f fault) whom() string {
	switch {
	case f.replica >= 0:
		return fmt.Sprintf("replica %d (%s)", f.replica+1, f.process)
	case len(f.nodes) == 1:
		return "node " + numbers(f.nodes)
	}
	return "nodes " + numbers(f.nodes)
}

// numbers are nodes as people count.
func numbers(of []int) string {
	words := make([]string, len(of))
	for i, n := range of {
		words[i] = fmt.Sprint(n + 1)
	}
	return strings.Join(words, ", ")
}

func moment(t time.Time) string { return t.UTC().Format("15:04:05.0") }
