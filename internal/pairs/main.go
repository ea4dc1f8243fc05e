// Command pairs measures what a lock and its unlock cost with 1, 64 and 512 callers at once, each
// with a name of its own, beside redsync in the same run: in rounds, in turn, so that what else
// happens on the machine meets all of them.
//
//	go run ./internal/pairs
//
// Its last line says what was judged, and by what: with 64 callers we have to be 6 times as fast as
// redsync with fail-fast, or -min times. On nodes inside this process, which it falls back to where
// there is no redis-server, it judges by -min alone: the 6 are about servers.
//
//	go run ./internal/pairs -guard
//
// measures ours with the restart guard beside ours without it, with 64 callers alone; the guard may
// cost a tenth of the throughput, or -min says what must be left. The clock watch cannot be switched
// off, and is in both.
//
//	go run ./internal/pairs -callers 64 -profile DIR
//
// measures ours alone, with so many callers, and leaves cpu.pprof and allocs.pprof in DIR, which it
// makes if need be, for `go tool pprof -top DIR/cpu.pprof`. Neither flag goes with -guard, and with
// either nothing is judged.
//
// "bare scripts" is the ceiling: what the nodes do when the same scripts are sent in the fullest
// calls by a loop without any logic.
//
// The exit status is 1 if what is judged was not reached, if the run could not be finished, and after
// an interrupt, which ends the nodes and leaves nothing behind; a second one ends the program at once.
// It is 2 if the flags are wrong.
//
// In reading order: main.go, settings.go, measure.go, verdict.go, libraries.go, profile.go; package
// bare.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/quorumlock/internal/fleet"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command is the program, and returns its exit status.
func command(args []string, out, told io.Writer) int {
	s, err := settingsFrom(args, told)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(told, "pairs:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	v, err := run(ctx, s, out, told)
	if err != nil {
		fmt.Fprintln(told, "pairs:", err)
		return 1
	}
	fmt.Fprintln(out, v)
	if !v.reached() {
		return 1
	}
	return 0
}

// run measures and reports. When it returns, all nodes have ended, also where ctx did before.
func run(ctx context.Context, s settings, out, progress io.Writer) (v verdict, err error) {
	if err := s.check(); err != nil {
		return v, err
	}
	profile, err := openProfile(s.dir)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, profile.close()) }()
	nodes, err := s.start(ctx)
	if err != nil {
		return v, interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	v, err = s.compare(ctx, nodes, profile, out, progress)
	return v, interrupted(ctx, err)
}

// interrupted says so in place of all that followed from it.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	return err
}

// compare measures the libraries on these nodes.
func (s settings) compare(
	ctx context.Context, nodes *fleet.Fleet, profile *profile, out, progress io.Writer,
) (v verdict, err error) {
	libs, closeLibs, err := open(ctx, nodes.Addrs(), s)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, closeLibs()) }()
	if err := warmUp(ctx, libs); err != nil {
		return v, err
	}
	fmt.Fprintf(out, "%v on loopback, lock + unlock of distinct names, %d rounds of %v each\n\n",
		nodes, s.rounds, s.span)
	if s.dir != "" {
		libs = libs[:1]
	}
	if err := profile.start(); err != nil {
		return v, err
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
				if err := ctx.Err(); err != nil {
					return v, err
				}
			}
		}
		fmt.Fprintf(progress, "round %d of %d\n", round+1, s.rounds)
	}
	if err := report(out, s.counts(), libs, samples); err != nil {
		return v, err
	}
	return s.judge(nodes.Real(), libs, samples), nil
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

// report prints the table, and the first failures below it.
func report(out io.Writer, callers []int, libs []library, samples map[int][][]sample) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table,
		"callers\tlibrary\tmedian/pair\tfastest\tslowest\ttheirs/ours\tallocs/pair\tbytes/pair\tfailed\t")
	var failures []string
	for _, n := range callers {
		for i, lib := range libs {
			s := summarize(samples[n][i])
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%.2fx\t%.0f\t%.0f\t%d\t\n", n, lib.name,
				millis(s.median), millis(s.least), millis(s.most),
				ratioOf(samples[n][i], samples[n][0]), s.allocs, s.bytes, s.failed)
			if s.err != nil {
				failures = append(failures, fmt.Sprintf("%s, %d callers, first failure: %v",
					lib.name, n, s.err))
			}
		}
	}
	err := table.Flush()
	for _, failure := range failures {
		fmt.Fprintln(out, failure)
	}
	return err
}

func millis(d time.Duration) string { return fmt.Sprintf("%.4f ms", float64(d)/1e6) }
