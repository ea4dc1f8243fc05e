// Command demo shows what quorumlock is for, without Docker, Redis or a network: five nodes, three
// replicas as real processes, jobs every second and every five seconds, and trouble. Each tick has
// to run on exactly one replica, while replicas are killed, frozen and redeployed, one has a wrong
// clock, and two of the five nodes are down for a while.
//
//	go run ./docs/demo [-for 30s] [-replicas 3] [-nodes 5] [-redis host:port,...] [-seed 1]
//
// At the end a table counts what the runs themselves recorded. The exit status is 1 if a tick ran
// twice, or is missing without a reason that docs/guarantees.md calls lawful; 130 if the demo was
// interrupted, because then nothing was judged.
//
// Files in reading order: main.go, stage.go (what runs, and what it reported), replica.go (one
// replica process), nemesis.go (the trouble), judge.go (pure: what became of each tick), view.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/internal/embedded"
)

// options are what the command line says.
type options struct {
	span     time.Duration
	replicas int
	nodes    int
	redis    []string
	seed     uint64
}

// interrupted is the exit status that shells have for SIGINT: 128 and its number.
const interrupted = 130

func main() {
	if len(os.Args) > 1 && os.Args[1] == replicaMode {
		os.Exit(replicaMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out *os.File, errs io.Writer) int {
	opts, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errs, "demo:", err)
		return 2
	}
	s, err := newStage(opts)
	if err != nil {
		fmt.Fprintln(errs, "demo:", err)
		return 1
	}
	defer s.close()
	v := newView(s, out)
	err = play(ctx, s, v, opts)
	v.end()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(errs, "demo: interrupted")
		return interrupted
	case err != nil:
		fmt.Fprintln(errs, "demo:", err)
		return 1
	}
	verdict := s.verdict()
	verdict.print(out)
	if !verdict.ok() {
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (opts options, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errs)
	redis := flags.String("redis", "", "your own nodes, `host:port,...`, instead of embedded ones")
	flags.DurationVar(&opts.span, "for", 30*time.Second, "how long it plays, at least 10s")
	flags.IntVar(&opts.replicas, "replicas", 3, "replica processes at the start, 2 to 9")
	flags.IntVar(&opts.nodes, "nodes", 5, "embedded nodes, 1 to 9")
	flags.Uint64Var(&opts.seed, "seed", 1, "whom the trouble hits")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if *redis != "" {
		opts.redis = strings.Split(*redis, ",")
		opts.nodes = len(opts.redis)
	}
	switch {
	case flags.NArg() > 0:
		return opts, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case opts.span < 10*time.Second:
		return opts, fmt.Errorf("-for %v: at least 10s, or the trouble has no room", opts.span)
	case opts.replicas < 2 || opts.replicas > 9:
		return opts, fmt.Errorf("-replicas %d: 2 to 9", opts.replicas)
	case opts.nodes < 1 || opts.nodes > 9:
		return opts, fmt.Errorf("-nodes %d: 1 to 9", opts.nodes)
	}
	return opts, nil
}

// startNodes starts embedded nodes, unless the user has some.
func startNodes(opts options) (embedded.Nodes, []string, error) {
	if len(opts.redis) > 0 {
		return nil, opts.redis, nil
	}
	nodes, err := embedded.Start(opts.nodes)
	if err != nil {
		return nil, nil, fmt.Errorf("embedded nodes: %w", err)
	}
	return nodes, nodes.Addrs(), nil
}

// play runs the demo: replicas up, ticks counted from the next whole second on, trouble, the end.
func play(ctx context.Context, s *stage, v *view, opts options) error {
	go v.run()
	for i := range opts.replicas {
		if err := s.start(fmt.Sprintf("web-%d", i+1), 0); err != nil {
			return err
		}
	}
	if err := s.awaitReady(ctx, opts.replicas); err != nil {
		return err
	}
	from := time.Now().Truncate(time.Second).Add(2 * time.Second)
	until := from.Add(opts.span)
	s.count(from, until)
	trouble(ctx, s, opts, from)
	if err := sleepUntil(ctx, until); err != nil {
		return err
	}
	// What was due shortly before the end may still be claimed or running.
	if err := sleepUntil(ctx, until.Add(3*time.Second)); err != nil {
		return err
	}
	s.shutdown()
	return nil
}

// sleepUntil waits for a moment, or for the end of ctx.
func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
