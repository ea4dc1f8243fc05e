// Command elections lets replicas try for the same lock at the same moment, once each, over a
// network that delays every message by a random time, and counts the elections that nobody or
// more than one wins. redsync does the same in the same run, over the same connections.
//
//	go run ./internal/elections
//
// The exit status is 1 if an election of ours had no winner or two.
//
// In reading order: main.go, election.go, contender.go; package delay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/quorumlock/internal/fleet"
)

// settings are what the flags say.
type settings struct {
	elections  int
	contenders []int
	delay      time.Duration
	pause      time.Duration
	nodes      int
	seed       uint64
	oursOnly   bool
}

func main() {
	s := settings{contenders: []int{2, 3, 5, 10, 20}}
	flag.IntVar(&s.elections, "elections", 300, "elections for each number of contenders")
	flag.Func("contenders", "numbers of contenders (default 2,3,5,10,20)", s.setContenders)
	flag.DurationVar(&s.delay, "delay", 2*time.Millisecond,
		"most that a message takes, each way; the least is 0")
	flag.DurationVar(&s.pause, "pause", 10*time.Millisecond,
		"between two elections, for the losers' releases to arrive")
	flag.IntVar(&s.nodes, "nodes", 5, "nodes")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()),
		"of the delays; the machine's own timing is not repeated by it")
	flag.BoolVar(&s.oursOnly, "ours", false, "leave redsync out")
	flag.Parse()

	ok, err := run(context.Background(), s, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "elections:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func (s *settings) setContenders(list string) error {
	s.contenders = nil
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of contenders", text)
		}
		s.contenders = append(s.contenders, n)
	}
	return nil
}

// run holds all elections and reports whether each of ours had exactly one winner.
func run(ctx context.Context, s settings, out, progress io.Writer) (ok bool, err error) {
	nodes, err := fleet.Start(ctx, s.nodes)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	fmt.Fprintf(out, "%v, each message delayed by 0 to %v, %d elections each, seed %d\n\n",
		nodes, s.delay, s.elections, s.seed)

	libs := libraries()
	if s.oursOnly {
		libs = libs[:1]
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "contenders\tlibrary\tno winner\ttwo winners\tp50\tp99\tlongest\t")
	ok = true
	var details []string
	for _, contenders := range s.contenders {
		tallies, splits, err := campaign(ctx, s, libs, nodes.Addrs(), contenders, progress)
		if err != nil {
			return false, err
		}
		for i, lib := range libs {
			t := &tallies[i]
			fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t\n", contenders, lib.name, part(t.none, t.elections),
				t.several, millis(t.quantile(0.5)), millis(t.quantile(0.99)), millis(t.quantile(1)))
			if lib.ours {
				ok = ok && t.none == 0 && t.several == 0
				details = append(details, fmt.Sprintf("%d contenders: %s; losers told of the holder %d, of"+
					" split votes %d", contenders, splits, t.held, t.unsettled))
				for _, err := range t.errs {
					details = append(details, err.Error())
				}
			}
		}
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\nquorumlock in detail:\n%s\n", strings.Join(details, "\n"))
	return ok, nil
}

// campaign holds the elections with one number of contenders, of all libraries in turn, so that
// what else happens on the machine meets all of them.
func campaign(ctx context.Context, s settings, libs []library, addrs []string, contenders int,
	progress io.Writer,
) (tallies []tally, splits string, err error) {
	var replicas []*replica
	defer func() {
		for _, r := range replicas {
			err = errors.Join(err, r.close())
		}
	}()
	for i := range contenders {
		r, err := newReplica(addrs, s.seed+uint64(1000*contenders+10*i), s)
		if err != nil {
			return nil, "", err
		}
		replicas = append(replicas, r)
		if err := r.rehearse(ctx, fmt.Sprintf("rehearsal of %d", i)); err != nil {
			return nil, "", err
		}
	}
	tallies = make([]tally, len(libs))
	for n := range s.elections {
		for i, lib := range libs {
			elect(ctx, lib, replicas, fmt.Sprintf("election %d of %d by %s", n, contenders, lib.name),
				&tallies[i])
			time.Sleep(s.pause)
		}
		if (n+1)%50 == 0 {
			fmt.Fprintf(progress, "%d contenders: %d of %d\n", contenders, n+1, s.elections)
		}
	}
	return tallies, splitsOf(replicas), nil
}

// splitsOf says how often votes split, and what it took to settle them.
func splitsOf(replicas []*replica) string {
	var splits, yields, repeats, raises int64
	for _, r := range replicas {
		c := r.counters()
		splits += c.Splits.Load()
		yields += c.Yields.Load()
		repeats += c.Repeats.Load()
		raises += c.Raises.Load()
	}
	return fmt.Sprintf("%d times a contender led a split vote, %d times one yielded, %d messages"+
		" repeated, %d tokens raised", splits, yields, repeats, raises)
}

func part(n, of int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.0f %%)", n, 100*float64(n)/float64(max(of, 1)))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
