// Command soak runs a schedule on several replicas, each a process, over five nodes in containers,
// while a nemesis kills, freezes, cuts off, slows and empties nodes and steps a clock, and kills and
// freezes replicas. At the end it says of each tick that was due whether it ran, and if not, why; a
// tick that ran twice, or not at all for no reason, is status 1. The picture has every run and every
// fault.
//
// Files in reading order: main.go, replica.go, nemesis.go, stage.go, judge.go, picture.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silent{}) // dials that fail are what this is about
	if len(os.Args) > 1 && os.Args[1] == replicaMode {
		os.Exit(replicaMain(os.Args[2:]))
	}
	span := flag.Duration("for", 2*time.Minute, "how long")
	seed := flag.Uint64("seed", 0, "what happens; 0: at random")
	svg := flag.String("svg", "soak.svg", "where the picture goes")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64() >> 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	v, err := soak(ctx, *span, *seed, *svg)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "soak: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case len(v.trouble) > 0:
		os.Exit(1)
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// soak plays it, prints the table, and draws the picture.
func soak(ctx context.Context, span time.Duration, seed uint64, svg string) (verdict, error) {
	fmt.Printf("soak: %v, seed %d\n", span, seed)
	s, err := newStage(ctx, seed)
	if err != nil {
		return verdict{}, err
	}
	defer s.close()
	if err := s.startReplicas(ctx); err != nil {
		return verdict{}, err
	}
	// Whole seconds, so that it is plain which ticks are due.
	from := time.Now().Add(2 * time.Second).Truncate(time.Second)
	until := from.Add(span)
	s.trouble(ctx, from, until)
	if ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	if err := sleepUntil(ctx, until.Add(2*time.Second)); err != nil { // the last runs end
		return verdict{}, err
	}
	s.endReplicas()
	v := judge(from, until, s.records, s.faults)
	v.print(os.Stdout)
	err = os.WriteFile(svg, picture(from, until, s.records, s.faults, v), 0o644)
	if err == nil {
		fmt.Printf("soak: the timeline is %s\n", svg)
	}
	return v, errors.Join(err, s.close())
}

func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
