// Command bench measures quorumlock beside other Redis locks, in one run, on redis-server
// processes that it starts by itself on loopback, and judges the numbers by the project's targets.
//
//	go run ./bench                # in integration/: the core, under ten minutes
//	go run ./bench -form short    # the first targets, under 90 s
//	go run ./bench -form delay    # lock + unlock with 1 ms and 20 ms of added delay
//	go run ./bench -form handoff  # one name from holder to holder
//	go run ./bench -form full     # all there is
//	go run ./bench -h             # the forms, and how long each takes
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
// The exit status is 1 if the run could not be finished, which includes a file of -out or -svg that
// cannot be written: that is found before anything is measured. It is 2 if the flags are wrong. A target
// that is not reached is printed as such, and no failure. An interrupt ends the nodes, leaves nothing
// behind and gives 130; a second one ends the program at once.
//
// The processes of the hand-offs are this program once more, started by it with
// QUORUMLOCK_BENCH_MEMBER set; they end with it.
//
// Files in reading order: main.go, settings.go, files.go, form.go, stage.go, peer.go (ours.go,
// redsync.go, rueidislock.go, redislock.go, gocronredislock.go), pair.go, handoff.go (distance.go,
// crew.go, member.go, shift.go), election.go, holding.go, ticking.go, outage.go, commands.go, cpu_*.go;
// pure: rota.go, statistics.go, results.go, target.go, table.go, tables.go, chart.go, document.go;
// machine.go, commit.go.
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
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silent{}) // a node that is dead is what a part of this is about
	if is, err := isMember(); is {
		endMember(err)
	}
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command is the program, and returns its exit status.
func command(args []string, out, told io.Writer) int {
	s, err := settingsFrom(args, told)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(told, "bench:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	err = run(ctx, s, out, told)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(told, "bench: interrupted:", context.Cause(ctx))
		return 130
	case err != nil:
		fmt.Fprintln(told, "bench:", err)
		return 1
	}
	return 0
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
	if err := s.files.check(); err != nil {
		return err
	}
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
	return s.files.write(&d)
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
