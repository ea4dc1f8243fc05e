package main

import (
	"fmt"
	"io"
	"time"
)

// report prints what was seen and returns the number of violations.
func report(out io.Writer, s settings, clusters []*cluster, took time.Duration) int {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-32s %s\n", what, fmt.Sprintf(format, args...))
	}
	var all counts
	var episodes [nodes + 1]int
	total := 0
	for _, c := range clusters {
		all.add(c.ledger.sum())
		for i, n := range c.episodes {
			episodes[i] += n
			total += n
		}
	}
	line("set-up", "%d x %d redis-server processes without persistence, %d clients and %d names each,"+
		" TTL %v, guard %v, seed %d", len(clusters), nodes, s.clients, s.names, s.ttl, s.guard, s.seed)
	line("episodes", "%d in %v", total, took.Round(time.Second))
	for _, many := range restarted {
		line(fmt.Sprintf("  of %d nodes restarted empty", many), "%d", episodes[many])
	}
	line("locks won", "%d", all.won)
	line("locks lost", "%d, and %d before anybody could act", all.lost, all.unheld)
	line("tries without a quorum", "%d", all.unquorate)
	line("tokens that did not grow", "%d", all.fallen)
	line("double holds", "%d", all.doubles)
	for i, c := range clusters {
		for _, fault := range c.ledger.faults {
			line(fmt.Sprintf("  cluster %d", i), "%s", fault)
		}
	}
	return all.doubles + all.fallen
}
