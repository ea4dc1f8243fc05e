package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

// A fleet is some replicas of one service over nodes in memory.
type fleet struct {
	*testing.T
	nodes  *redlocktest.Quorum
	record ticktest.Record
	began  time.Time
	ended  time.Time // of the period in which ticks have to run; zero: now

	mu      sync.Mutex // guards skipped
	skipped []TickEvent
}

func newFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	f := &fleet{T: t, nodes: redlocktest.Start(t, nodes), began: time.Now()}
	for _, n := range f.nodes.Nodes() {
		n.Delay(time.Millisecond)
	}
	return f
}

// client is a process's client; its wall clock is off by ahead.
func (f *fleet) client(name string, ahead time.Duration) *redlock.Client {
	f.Helper()
	c, err := f.nodes.Client(redlock.Config{Identity: name})
	if err != nil {
		f.Fatal(err)
	}
	f.nodes.StepClock(c, ahead)
	return c
}

// clientOn is a client over nodes of the test's own, with ways to them of its own.
func clientOn(t *testing.T, nodes ...*fakenode.Node) *redlock.Client {
	t.Helper()
	var links []quorum.Node
	for _, n := range nodes {
		links = append(links, n.Link())
	}
	made, err := door.NewClient(redlock.Config{Logger: slog.New(slog.DiscardHandler)}, links,
		clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*redlock.Client)
}

// A replica is one process of the service.
type replica struct {
	*Scheduler
	fleet  *fleet
	name   string
	client *redlock.Client
}

// replica makes a process whose clock is off by ahead. It is not started.
func (f *fleet) replica(name string, ahead time.Duration, opts ...Option) *replica {
	f.Helper()
	c := f.client(name, ahead)
	opts = append([]Option{WithLogger(slog.New(slog.DiscardHandler)),
		WithObserver(&Observer{Skipped: f.skip})}, opts...)
	s, err := New(c, opts...)
	if err != nil {
		f.Fatal(err)
	}
	return &replica{Scheduler: s, fleet: f, name: name, client: c}
}

func (f *fleet) skip(e TickEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skipped = append(f.skipped, e)
}

// events are what an Observer was told.
type events struct {
	mu   sync.Mutex // guards told
	told []TickEvent
}

func (e *events) add(event TickEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, event)
}

func (e *events) all() []TickEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told
}

// skips are the ticks that some replica did not run, of those whose reason matches target.
func (f *fleet) skips(target error) (events []TickEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.skipped {
		if errors.Is(e.Err, target) {
			events = append(events, e)
		}
	}
	return events
}

// job adds a job whose runs take that long, and end with their context.
func (r *replica) job(
	name string, when gocron.JobDefinition, takes time.Duration, opts ...JobOption,
) gocron.Job {
	r.fleet.Helper()
	j, err := r.Add(name, when, r.records(takes), opts...)
	if err != nil {
		r.fleet.Fatal(err)
	}
	return j
}

// records is a run that records itself.
func (r *replica) records(takes time.Duration) func(context.Context, Tick) error {
	return func(ctx context.Context, tick Tick) error {
		defer r.fleet.record.Begin(ticktest.Run{Job: tick.Job, At: tick.At, Token: tick.Token,
			Replica: r.name, Manual: tick.Manual})()
		if takes == 0 {
			return nil
		}
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop shuts the replica down, its runs included.
func (r *replica) stop() {
	r.fleet.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		r.fleet.Errorf("%s: Shutdown: %v", r.name, err)
	}
}

// cut parts the replica from all nodes.
func (r *replica) cut() {
	for _, n := range r.fleet.nodes.Nodes() {
		n.Cut(r.client)
	}
}

func (r *replica) heal() {
	for _, n := range r.fleet.nodes.Nodes() {
		n.Heal(r.client)
	}
}

// everySecond is the shortest cron.
func everySecond() gocron.JobDefinition { return gocron.CronJob("* * * * * *", true) }

// due are the multiples of an interval since the fleet began, up to the first stop of all.
func (f *fleet) due(interval time.Duration) []time.Time {
	ended := f.ended
	if ended.IsZero() {
		ended = time.Now()
	}
	return ticktest.Every(interval, f.began, ended)
}

// stop shuts all replicas down.
func (f *fleet) stop(all []*replica) {
	f.Helper()
	f.ended = time.Now()
	var stopped sync.WaitGroup
	for _, r := range all {
		stopped.Go(r.stop)
	}
	stopped.Wait()
}

// check wants what must be true always.
func (f *fleet) check() {
	f.Helper()
	f.record.Once(f)
	f.record.Ordered(f)
}

// claimer is a process's claimer, without a scheduler.
func (f *fleet) claimer(name string, job string) *claimer {
	f.Helper()
	access := door.Open(f.client(name, 0))
	return &claimer{access: access, job: job, turns: newTurns(access.NodeTimeout), now: func() time.Time {
		return access.Clock.Now().Time()
	}}
}

// wantIs wants an error to match all of the first and none of the others.
func wantIs(t *testing.T, err error, matches []error, not ...error) {
	t.Helper()
	for _, target := range matches {
		if !errors.Is(err, target) {
			t.Errorf("got %v, want an error that matches %q", err, target)
		}
	}
	for _, target := range not {
		if errors.Is(err, target) {
			t.Errorf("got %v, want an error that does not match %q", err, target)
		}
	}
	if err != nil {
		var round *redlock.RoundError
		if !errors.As(err, &round) {
			t.Errorf("got %v, want a RoundError inside", err)
		}
	}
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("replica-", i))
	}
	return all
}
