// Command amnesia lets real redis-server processes forget: while several clients compete for a few
// names and hold them, any 1, 2, 3 or all 5 nodes are killed at a random moment and started again
// empty. One such moment is an episode. An observer, in one process and so on one clock, sees to it
// that a name never has two valid holders and that fencing tokens grow.
//
//	go run ./internal/amnesia -count 1000
//	go run ./internal/amnesia -guard=false -expect-violation
//
// The exit status is 1 if a name had two holders or a token did not grow. With -expect-violation it
// is the other way round: the run ends with the first two holders, and the status is 1 if there
// were none. That shows that the observer would see them: without the restart guard it does.
//
// In reading order: main.go, run.go, cluster.go, contender.go, ledger.go, report.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

// settings are what the flags say.
type settings struct {
	count    int
	guard    bool
	expect   bool
	seed     uint64
	clusters int
	clients  int
	names    int
	ttl      time.Duration
}

// defaults are those of the flags.
func defaults() settings {
	return settings{count: 1000, guard: true, seed: uint64(time.Now().UnixNano()), clusters: 2,
		clients: 4, names: 2, ttl: 400 * time.Millisecond}
}

func main() {
	s := defaults()
	flag.IntVar(&s.count, "count", s.count, "episodes")
	flag.BoolVar(&s.guard, "guard", s.guard, "the restart guard; without it there are two holders")
	flag.BoolVar(&s.expect, "expect-violation", s.expect,
		"end with the first violation; the exit status is 1 if there is none")
	flag.Uint64Var(&s.seed, "seed", s.seed,
		"of all choices; the machine's own timing is not repeated by it")
	flag.IntVar(&s.clusters, "clusters", s.clusters, "of five nodes each, side by side")
	flag.IntVar(&s.clients, "clients", s.clients, "for each cluster")
	flag.IntVar(&s.names, "names", s.names, "that all clients of a cluster compete for")
	flag.DurationVar(&s.ttl, "ttl", s.ttl, "TTL and MaxTTL of the locks")
	flag.Parse()

	ok, err := run(context.Background(), s, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "amnesia:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}
