// Command pairs measures what a lock and its unlock cost with 1, 64 and 512 callers at once, each
// with a name of its own, beside redsync in the same run: in rounds, in turn, so that what else
// happens on the machine meets all of them.
//
//	go run ./internal/pairs
//
// The exit status is 1 if at 64 callers we are not -min times as fast as redsync with fail-fast.
//
//	go run ./internal/pairs -guard
//
// measures ours with the restart guard beside ours without it; the exit status is 1 if the guard
// costs more than a tenth of the throughput at 64 callers. The clock watch cannot be switched off,
// and is in both.
//
//	go run ./internal/pairs -callers 64 -profile DIR
//
// measures ours alone, with so many callers, and leaves cpu.pprof and allocs.pprof in DIR, for
// `go tool pprof -top DIR/cpu.pprof`.
//
// "bare scripts" is the ceiling: what the nodes do when the same scripts are sent in the fullest
// calls by a loop without any logic.
//
// In reading order: main.go, measure.go, libraries.go, profile.go; package bare.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/quorumlock/internal/fleet"
)

// settings are what the flags say.
type settings struct {
	rounds int
	span   time.Duration
	nodes  int
	pool   int
	min    float64
	guard  bool
	inside bool
	only   int // callers; 0: all numbers of them
	dir    string
}

// check says what is wrong with the numbers.
func (s settings) check() error {
	switch {
	case s.rounds < 1:
		return fmt.Errorf("-rounds %d: 1 at least", s.rounds)
	case s.span <= 0:
		return fmt.Errorf("-span %v: must be positive", s.span)
	case s.nodes < 1:
		return fmt.Errorf("-nodes %d: 1 at least", s.nodes)
	case s.pool < 0:
		return fmt.Errorf("-pool %d: 1 at least, or 0 for go-redis' default", s.pool)
	case s.only < 0:
		return fmt.Errorf("-callers %d: 1 at least, or 0 for 1, 64 and 512", s.only)
	}
	return nil
}

// start starts the nodes.
func (s settings) start(ctx context.Context) (*fleet.Fleet, error) {
	if s.inside {
		return fleet.StartInside(s.nodes)
	}
	return fleet.Start(ctx, s.nodes)
}

// callers are how many call at once; judged is the number that the exit status depends on.
var callers = []int{1, 64, 512}

const judged = 64

// counts are the numbers of callers to measure with.
func (s settings) counts() []int {
	if s.only > 0 {
		return []int{s.only}
	}
	if s.guard {
		return []int{judged}
	}
	return callers
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds")
	flag.DurationVar(&s.span, "span", time.Second, "of one library, in one round, with one number of callers")
	flag.IntVar(&s.nodes, "nodes", 5, "nodes")
	flag.IntVar(&s.pool, "pool", 0, "redsync's connections to each node; 0: go-redis' default")
	flag.Float64Var(&s.min, "min", 6, "how many times as fast as redsync fail-fast we must be; with -guard, 0.9")
	flag.BoolVar(&s.guard, "guard", false, "compare ours with and without the restart guard")
	flag.BoolVar(&s.inside, "inside", false, "on nodes inside this process, also where there is a redis-server")
	flag.IntVar(&s.only, "callers", 0, "measure with so many callers only, and judge nothing; 0: with 1, 64 and 512")
	flag.StringVar(&s.dir, "profile", "", "measure ours alone, and write profiles into this directory")
	flag.Parse()
	switch {
	case s.only != 0 || s.dir != "":
		s.min = 0
	case s.guard:
		s.min = 0.9
	}

	ratio, err := run(context.Background(), s, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
	}
	if err != nil || ratio < s.min {
		os.Exit(1)
	}
}

// run measures and reports, and returns the ratio that is judged.
func run(ctx context.Context, s settings, out, progress io.Writer) (ratio float64, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	nodes, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	libs, closeLibs, err := open(nodes.Addrs(), s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeLibs()) }()
	if err := warmUp(ctx, libs); err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%v on loopback, lock + unlock of distinct names, %d rounds of %v each\n\n",
		nodes, s.rounds, s.span)

	profile := profile{dir: s.dir}
	if s.dir != "" {
		libs = libs[:1]
	}
	if err := profile.start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, profile.stop()) }()

	samples := make(map[int][][]sample) // by callers, by library, by round
	for _, n := range s.counts() {
		samples[n] = make([][]sample, len(libs))
	}
	for round := range s.rounds {
		for _, n := range s.counts() {
			for i := range libs {
				i = (i + round) % len(libs) // nobody always goes first
				samples[n][i] = append(samples[n][i], measure(ctx, libs[i], n, s.span))
			}
		}
		fmt.Fprintf(progress, "round %d of %d\n", round+1, s.rounds)
	}
	return report(out, s.counts(), libs, samples)
}

// warmUp waits for the nodes, opens connections and fills the nodes' script caches.
func warmUp(ctx context.Context, libs []library) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, lib := range libs {
		if lib.bare != nil {
			continue
		}
		if err := lib.pair(ctx, "warm up"); err != nil {
			return fmt.Errorf("%s: %w", lib.name, err)
		}
	}
	return nil
}

// report prints the table and returns our ratio to the last of the libraries, redsync fail-fast,
// at the number of callers that is judged: the median over the rounds.
func report(
	out io.Writer, callers []int, libs []library, samples map[int][][]sample,
) (ratio float64, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table,
		"callers\tlibrary\tmedian/pair\tfastest\tslowest\tours is\tallocs/pair\tbytes/pair\tfailed\t")
	var failures []string
	for _, n := range callers {
		for i, lib := range libs {
			s := summarize(samples[n][i])
			times := ratioOf(samples[n][i], samples[n][0])
			if n == judged {
				ratio = times
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%.2fx\t%.0f\t%.0f\t%d\t\n", n, lib.name,
				millis(s.median), millis(s.least), millis(s.most), times, s.allocs, s.bytes, s.failed)
			if s.err != nil {
				failures = append(failures, fmt.Sprintf("%s, %d callers, first failure: %v",
					lib.name, n, s.err))
			}
		}
	}
	err = table.Flush()
	for _, failure := range failures {
		fmt.Fprintln(out, failure)
	}
	return ratio, err
}

func millis(d time.Duration) string { return fmt.Sprintf("%.4f ms", float64(d)/1e6) }
