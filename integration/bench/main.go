// Command bench measures quorumlock beside other Redis locks, in one run, on redis-server
// processes that it starts by itself on loopback, and judges the numbers by the project's targets.
//
//	go run ./bench                # in integration/: the core, under ten minutes
//	go run ./bench -form short    # the first targets, under 90 s
//	go run ./bench -form delay    # lock + unlock with 1 ms and 20 ms of added delay
//	go run ./bench -form handoff  # one name from holder to holder
//	go run ./bench -form full     # all there is
//	go run ./bench -out ../docs/benchmarks.md -svg ../docs/benchmarks.svg
//
// "make bench" and "make bench-short" do the same, and install redis-server where it is missing.
//
// What is measured, each in rounds in which all libraries take turns:
//
//   - lock + unlock of distinct names, by callers, nodes and added delay; ours with a node in
//     trouble (pair.go)
//   - the ceiling: the nodes' scripts without any library (package bare)
//   - the hand-off of one name between waiters in several processes, and what waiting costs
//     (handoff.go)
//   - elections: one try each at the same moment, with delayed messages (election.go)
//   - in the full form: locks held and renewed (holding.go), ticks of many jobs at one instant, beside
//     gocron-redis-lock (ticking.go), and a node that is gone for a minute and comes back (outage.go)
//
// The exit status is 1 if the run could not be finished; a target that is not reached is printed as
// such, and no failure. An interrupt ends the nodes and leaves nothing behind.
//
// The processes of the hand-offs are this program once more, started by it with
// QUORUMLOCK_BENCH_MEMBER set; they end with it.
//
// Files in reading order: main.go, form.go, stage.go, peer.go (ours.go, redsync.go, rueidislock.go,
// redislock.go, gocronredislock.go), pair.go, handoff.go (distance.go, crew.go, member.go, shift.go),
// election.go, holding.go, ticking.go, outage.go, commands.go, cpu_*.go; pure: rota.go, statistics.go,
// results.go, target.go, table.go, tables.go, chart.go, document.go; machine.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// settings are what the flags say.
type settings struct {
	form     form
	command  string // as the document names it
	out, svg string // files to write; "": none
}

func main() {
	redis.SetLogger(silent{}) // a node that is dead is what a part of this is about
	if is, err := isMember(); is {
		endMember(err)
	}
	var s settings
	name := flag.String("form", "core", "what to measure: short, core, delay, handoff, full")
	flag.StringVar(&s.out, "out", "", "file to write the document to, in Markdown")
	flag.StringVar(&s.svg, "svg", "", "file to write the chart to")
	flag.StringVar(&s.command, "command", "go run ./bench "+strings.Join(os.Args[1:], " "),
		"what the document says was run")
	flag.Parse()
	if err := s.chosen(*name, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	err := run(ctx, s, os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted:
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// endMember ends a process of a crew; what it says goes into its parent's error.
func endMember(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// chosen sets the form.
func (s *settings) chosen(name string, rest []string) (err error) {
	if len(rest) > 0 {
		return fmt.Errorf("%q: there are only flags, see -h", rest)
	}
	s.form, err = formNamed(name)
	return err
}

// progress says how far the run is.
type progress func(format string, args ...any)

func progressTo(out io.Writer) progress {
	began := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(out, "%5.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// run measures, prints, and writes the files. When it returns, all nodes have ended.
func run(ctx context.Context, s settings, out, told io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.form.limit,
		fmt.Errorf("given up after %v: is the machine busy with something else?", s.form.limit))
	defer cancel()
	d := document{command: s.command, at: time.Now()}
	var err error
	if d.machine, d.results, err = measure(ctx, &s.form, progressTo(told)); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		return err
	}
	d.took = time.Since(d.at)
	if err := d.print(out); err != nil {
		return err
	}
	return s.write(&d)
}

// measure runs all workloads of the form on nodes of its own.
func measure(
	ctx context.Context, f *form, say progress,
) (m machine, r results, err error) {
	r.form = *f
	s, err := startStage(ctx, f)
	if err != nil {
		return m, r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if m, err = thisMachine(ctx, s.healthy[0]); err != nil {
		return m, r, err
	}
	say("%d nodes run, and %d times five with one in trouble", len(s.healthy), len(s.broken))
	if r.pairs, err = measurePairs(ctx, s, f, say); err != nil {
		return m, r, err
	}
	if r.delayed() {
		far := pairCell{delay: targetDelay}
		if r.farTrip, err = roundTrip(ctx, s.healthy[0].Addr(), 50, far.dialer()); err != nil {
			return m, r, err
		}
	}
	if len(f.handoffs) > 0 {
		if err = r.measureHandoffs(ctx, s, say); err != nil {
			return m, r, err
		}
	}
	if r.elections, err = measureElections(ctx, s, f, say); err != nil {
		return m, r, err
	}
	if r.holdings, err = measureHoldings(ctx, s, f, say); err != nil {
		return m, r, err
	}
	if r.ticks, err = measureTicks(ctx, s, f, say); err != nil {
		return m, r, err
	}
	r.outages, err = measureOutages(ctx, f, say)
	return m, r, err
}

// write writes the document and the chart where they are wanted.
func (s *settings) write(d *document) error {
	if s.svg != "" {
		if err := os.WriteFile(s.svg, []byte(d.chart()), 0o644); err != nil {
			return err
		}
	}
	if s.out == "" {
		return nil
	}
	link := ""
	if s.svg != "" {
		var err error
		if link, err = filepath.Rel(filepath.Dir(s.out), s.svg); err != nil {
			return fmt.Errorf("-svg %s cannot be named from -out %s: %w", s.svg, s.out, err)
		}
	}
	return os.WriteFile(s.out, []byte(d.markdown(link)), 0o644)
}
