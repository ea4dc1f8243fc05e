// Command soak runs a schedule on several replicas, each a process with a wall clock of its own
// that is wrong, over five nodes in containers, while a nemesis kills, freezes, cuts off, empties
// and slows nodes and steps their clocks, and kills, freezes, cuts off and skews replicas. At the
// end it says of each tick that was due whether it ran, and if not, which replica wrote down why,
// and what was done to whom at the time; a tick that ran twice, or whose absence the records do
// not explain, is status 1. The picture has every run and every fault.
//
// The replicas use the public API alone. Their clocks are wrong because soak/build puts a changed
// clock into the standard library of this binary.
//
// Files in reading order: main.go, record.go, replica.go, clock_soak.go, build, stage.go,
// nemesis.go, judge.go, reason.go, machine.go, picture.go.
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

// leastSpan has room for a fault before the calm at the end.
const leastSpan = 20 * time.Second

func main() {
	redis.SetLogger(silent{}) // dials that fail are what this is about
	if len(os.Args) > 1 && os.Args[1] == replicaMode {
		os.Exit(replicaMain(os.Args[2:]))
	}
	span := flag.Duration("for", 2*time.Minute, "how long")
	seed := flag.Uint64("seed", 0, "what happens; 0: at random")
	svg := flag.String("svg", "soak.svg", "where the picture goes")
	flag.Parse()
	if *span < leastSpan {
		fmt.Fprintf(os.Stderr, "soak: -for %v: at least %v, or nothing happens\n", *span, leastSpan)
		os.Exit(2)
	}
	if *seed == 0 {
		*seed = rand.Uint64() >> 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := soak(ctx, *span, *seed, *svg)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "soak: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// soak plays it, prints the table, and draws the picture. It returns an error also if something
// happened that must not.
func soak(ctx context.Context, span time.Duration, seed uint64, svg string) error {
	if err := setClock(0); err != nil {
		return err
	}
	fmt.Printf("soak: %v, seed %d\n", span, seed)
	s, err := newStage(ctx, seed)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.startReplicas(ctx); err != nil {
		return err
	}
	// Whole seconds, so that it is plain which ticks are due.
	from := time.Now().Add(2 * time.Second).Truncate(every)
	until := from.Add(span)
	telling, stop := context.WithCancel(ctx)
	go s.progress(telling, from, until)
	watched := make(chan struct{})
	go func() {
		s.watch(telling)
		close(watched)
	}()
	err = s.trouble(ctx, from, until)
	stop()
	if err != nil {
		return err
	}
	<-watched
	if err := sleepUntil(ctx, until.Add(2*time.Second)); err != nil { // the last runs end
		return err
	}
	s.endReplicas(10 * time.Second)
	v := judge(from, until, s.records, s.faults, s.stalls)
	v.trouble = append(v.trouble, s.doubts...)
	v.print(os.Stdout, s.faults)
	err = os.WriteFile(svg, picture(from, until, s.records, s.faults, v), 0o644)
	if err == nil {
		fmt.Printf("soak: the timeline is %s\n", svg)
	}
	if len(v.trouble) > 0 {
		err = errors.Join(err, fmt.Errorf("soak: %d things happened that must not; seed %d",
			len(v.trouble), seed))
	}
	return errors.Join(err, s.close())
}

// progress writes a line every ten seconds until ctx ends.
func (s *stage) progress(ctx context.Context, from, until time.Time) {
	const often = 10 * time.Second
	for at := from.Add(often); sleepUntil(ctx, at) == nil; at = at.Add(often) {
		runs, last := 0, "nobody"
		s.mu.Lock()
		for _, r := range s.records {
			if r.Kind == isRun && !time.UnixMilli(r.At).Before(from) {
				runs, last = runs+1, r.Replica
			}
		}
		faults := len(s.faults)
		s.mu.Unlock()
		fmt.Printf("soak: %4.0f of %.0f s  %d ticks run, the last by %s; %d faults\n",
			at.Sub(from).Seconds(), until.Sub(from).Seconds(), runs, last, faults)
	}
}

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
