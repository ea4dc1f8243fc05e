package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/window"
	"github.com/quorumlock/quorumlock/redlock"
)

// settleTime is how long Shutdown waits for runs whose contexts it has ended.
const settleTime = time.Second

// A Scheduler runs jobs by gocron's schedules, each tick on one replica. It is made by New on every
// replica, with the same jobs, and used once: Add, Start, Shutdown. Its methods may be called
// concurrently.
type Scheduler struct {
	access   door.Access
	log      *slog.Logger
	observer *Observer
	location *time.Location
	policy   gocron.DaylightSavingsTimePolicy
	clock    *tickClock
	turns    *window.Window // of claims
	gocron   gocron.Scheduler

	claiming  gate // ticks on their way to a claim
	running   gate // runs, from their commit on
	claims    context.Context
	endClaims context.CancelFunc
	runs      context.Context // what runs' contexts end with, under OverlapAllow and at Shutdown
	endRuns   context.CancelCauseFunc
	left      chan struct{}  // closed when gocron need not wait for runs any more
	keeping   sync.WaitGroup // the clock's keeper

	mu      sync.Mutex // guards below
	state   schedulerState
	started chan struct{}   // closed when gocron has started
	jobs    map[string]*job // nil: the name is taken by an Add under way
	ended   chan struct{}   // closed when Shutdown is through
	err     error           // of Shutdown, once ended is closed
}

type schedulerState uint8

const (
	made schedulerState = iota
	started
	shutDown
)

// New makes a Scheduler over the client's nodes. It does not block, and runs nothing before Start.
// All faults of the options are in one error that matches redlock.ErrInvalid.
func New(c *redlock.Client, opts ...Option) (*Scheduler, error) {
	access := door.Open(c)
	if access.Engine == nil {
		return nil, fmt.Errorf("schedule: New: %w", invalid("the client is nil"))
	}
	o := options{location: time.UTC, logger: access.Logger}
	for _, opt := range opts {
		if opt == nil {
			o.faults = append(o.faults, invalid("an Option is nil"))
			continue
		}
		opt(&o)
	}
	o.faults = append(o.faults, checkGocron(o.gocron))
	if err := errors.Join(o.faults...); err != nil {
		return nil, fmt.Errorf("schedule: New: %w", err)
	}
	s := &Scheduler{
		access: access, log: o.logger, observer: o.observer, location: o.location,
		policy: globalPolicy(o.gocron), clock: newTickClock(access),
		turns: newTurns(access.NodeTimeout), left: make(chan struct{}),
		started: make(chan struct{}), ended: make(chan struct{}), jobs: make(map[string]*job),
	}
	var err error
	s.gocron, err = gocron.NewScheduler(append(slices.Clone(o.gocron),
		gocron.WithLocation(o.location), gocron.WithClock(s.clock))...)
	if err != nil {
		return nil, fmt.Errorf("schedule: New: %w: %w", redlock.ErrInvalid, err)
	}
	s.claims, s.endClaims = context.WithCancel(context.Background())
	s.runs, s.endRuns = context.WithCancelCause(context.Background())
	return s, nil
}

// Add gives the scheduler a job, before or after Start. On all replicas it has to have the same
// name, schedule and options: the name and the instant are what a tick is known by. run is called
// for every tick that this replica wins, in a goroutine of its own; its context ends when the run
// lock is lost, or at the end of Shutdown. What it returns, or panics with, goes to the Observer
// and the Logger, and changes nothing for the next tick.
//
// Intervals count from the epoch and not from Start. Errors match redlock.ErrInvalid: the name is
// empty, longer than redlock.MaxNameLen or taken; the schedule means different instants on
// different replicas, has no instants or such that are less than 100 ms apart, or is none of
// gocron's. After Shutdown: redlock.ErrClosed.
//
// The gocron.Job that comes back differs from gocron's in RunNow, which runs the job once without
// using up a tick: on each replica that is asked, one after the other or, if a run is under way,
// not at all (Observer.Skipped tells). It returns an error before Start and after Shutdown. The
// limits, monitors and listeners that gocron has know nothing of such a run.
func (s *Scheduler) Add(
	name string, when gocron.JobDefinition, run func(context.Context, Tick) error,
	opts ...JobOption,
) (gocron.Job, error) {
	j, err := s.add(name, when, run, opts)
	if err != nil {
		return nil, fmt.Errorf("schedule: Add %q: %w", name, err)
	}
	return j, nil
}

func (s *Scheduler) add(
	name string, when gocron.JobDefinition, run func(context.Context, Tick) error,
	opts []JobOption,
) (*job, error) {
	o := jobOptions{policy: s.policy}
	for _, opt := range opts {
		if opt == nil {
			o.faults = append(o.faults, invalid("a JobOption is nil"))
			continue
		}
		opt.applyJob(&o)
	}
	o.faults = append(o.faults, checkJobName(name))
	if run == nil {
		o.faults = append(o.faults, invalid("run is nil"))
	}
	p, err := newPlan(when, s.location, s.clock.Now(), o)
	if err := errors.Join(append(o.faults, err)...); err != nil {
		return nil, err
	}
	if err := s.reserve(name); err != nil {
		return nil, err
	}
	j := newJob(s, name, p, run, o)
	err = j.hand(p, o.tags)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		delete(s.jobs, name)
		return nil, fmt.Errorf("%w: %w", redlock.ErrInvalid, err)
	case s.state == shutDown: // meanwhile: gocron gave a job that is none
		delete(s.jobs, name)
		return nil, errShutDown
	}
	s.jobs[name] = j
	return j, nil
}

func checkJobName(name string) error {
	switch {
	case name == "":
		return invalid("the name is empty")
	case len(name) > redlock.MaxNameLen:
		return invalid("a name of %d bytes, at most %d", len(name), redlock.MaxNameLen)
	}
	return nil
}

// reserve takes a name.
func (s *Scheduler) reserve(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == shutDown {
		return errShutDown
	}
	if _, taken := s.jobs[name]; taken {
		return invalid("the name is taken by another job")
	}
	s.jobs[name] = nil
	return nil
}

// Remove takes a job out, so that it has no more ticks here. It does not wait for a run that is
// under way, and does not end it. An error matches redlock.ErrInvalid: there is no such job.
func (s *Scheduler) Remove(name string) error {
	s.mu.Lock()
	j := s.jobs[name]
	if j != nil {
		delete(s.jobs, name)
	}
	s.mu.Unlock()
	if j == nil {
		return fmt.Errorf("schedule: Remove %q: %w", name, invalid("there is no such job"))
	}
	j.removed.Store(true)
	// gocron may have removed it by itself, at WithStopAt.
	if err := s.gocron.RemoveJob(j.ID()); err != nil && !errors.Is(err, gocron.ErrJobNotFound) {
		return fmt.Errorf("schedule: Remove %q: %w", name, err)
	}
	return nil
}

// Start begins to run ticks. It asks the nodes for their time first, so it blocks for NodeTimeout
// at the most; nodes that are down do not hinder it. Calling it again, or after Shutdown, does
// nothing.
func (s *Scheduler) Start() {
	s.mu.Lock()
	if s.state != made {
		s.mu.Unlock()
		return
	}
	s.state = started
	s.keeping.Add(1)
	s.mu.Unlock()
	defer close(s.started)
	s.clock.ask(s.claims)
	go func() {
		defer s.keeping.Done()
		s.clock.keep(s.claims)
	}()
	s.gocron.Start()
}

// Shutdown ends the scheduler: from its call on no tick is claimed, and claims that are not
// committed are given back at once, so that another replica runs these ticks. Runs may finish
// until ctx ends; then their contexts end, and a second later at the latest Shutdown returns. A
// run that ignores its context goes on alone, and its run lock with it. A run that calls Shutdown
// itself is waited for like the others, so until ctx ends.
//
// The error matches ctx's if runs had to be ended. The client stays open. Calling it again waits
// for the first call.
func (s *Scheduler) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("schedule: Shutdown: %w", invalid("the context is nil"))
	}
	s.mu.Lock()
	was := s.state
	s.state = shutDown
	s.mu.Unlock()
	if was == shutDown {
		<-s.ended
		return s.err
	}
	claimed := s.claiming.close()
	s.endClaims()
	if was == started {
		<-s.started
	}
	<-claimed
	s.err = s.finishRuns(ctx)
	close(s.left)
	_ = s.gocron.Shutdown()
	s.keeping.Wait()
	close(s.ended)
	return s.err
}

// finishRuns waits for the runs, first as long as ctx lets it, then as long as they need to see
// that their contexts have ended.
func (s *Scheduler) finishRuns(ctx context.Context) error {
	empty := s.running.close()
	defer s.endRuns(errShutDown)
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	s.endRuns(errShutDown)
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-empty:
	case <-timer.C:
	}
	return fmt.Errorf("schedule: Shutdown: runs had to be ended: %w", ctx.Err())
}
