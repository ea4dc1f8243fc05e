package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
)

// A job is one job of a Scheduler: to gocron its locker and its task, to the user a gocron.Job.
//
// gocron calls Lock, the task, and Unlock of what Lock returned, one after the other on one
// goroutine. Lock puts its grant where the task takes it from; there is room for one, so that with
// several runs at once each takes its own.
type job struct {
	gocron.Job // set before ready is closed

	scheduler *Scheduler
	name      string
	run       func(context.Context, Tick) error
	grace     time.Duration
	stopAt    time.Time // no instants from then on; zero: it goes on
	shown     gocron.JobSchedule
	claimer   *claimer

	ready   chan struct{} // closed when gocron has the job
	grants  chan *grant   // capacity 1
	active  atomic.Int64  // runs under way
	removed atomic.Bool
}

func newJob(
	s *Scheduler, name string, p plan, run func(context.Context, Tick) error, o jobOptions,
) *job {
	j := &job{scheduler: s, name: name, run: run, grace: o.grace,
		stopAt: o.stopAt, shown: p.shown,
		ready: make(chan struct{}), grants: make(chan *grant, 1)}
	j.claimer = &claimer{access: s.access, job: name, overlap: o.overlap, now: s.clock.Now,
		steady: true, turns: s.turns}
	return j
}

// hand gives the job to gocron. On a running scheduler Lock can be called before this returns.
func (j *job) hand(p plan, tags []string) (err error) {
	options := append(p.options, gocron.WithName(j.name), gocron.WithTags(tags...),
		gocron.WithDistributedJobLocker(j), gocron.WithDisabledDistributedJobLocker(false))
	handle, err := j.scheduler.gocron.NewJob(p.definition, gocron.NewTask(j.perform), options...)
	if err != nil {
		return err
	}
	j.Job = handle
	close(j.ready)
	return nil
}

// Lock is for gocron.Locker: it claims the tick that is due.
func (j *job) Lock(ctx context.Context, _ string) (gocron.Lock, error) {
	s := j.scheduler
	if !s.claiming.enter() {
		return nil, errShutDown
	}
	defer s.claiming.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.claims, cancel)()
	select {
	case <-j.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d, err := j.due(ctx)
	if err != nil {
		if ctx.Err() == nil && !j.over() {
			s.log.Warn("schedule: tick not run: its instant is not known", "job", j.name, "reason", err)
		}
		return nil, err
	}
	g, err := j.claimer.claim(ctx, d)
	if err == nil || errors.Is(err, ErrTickTaken) {
		s.clock.answered()
	} else {
		s.clock.correct()
	}
	if err != nil {
		j.skipped(Tick{Job: j.name, At: d.at.UTC(), Attempt: 1}, err)
		return nil, err
	}
	s.running.enter() // open: it is closed only when nobody is claiming any more
	j.grants <- g
	return ticket{j}, nil
}

// due finds the tick that a call of Lock is for.
func (j *job) due(ctx context.Context) (due, error) {
	f, err := awaitInstant(ctx, j.listed, j.scheduler.clock.Now)
	if err != nil {
		return due{}, err
	}
	if f.due.IsZero() {
		// The clock was corrected between the timer and now: there are no calls for nothing here.
		f.due, f.next = f.next, time.Time{}
		if len(f.all) > 1 {
			f.next = f.all[1]
		}
	}
	if f.due.IsZero() {
		return due{}, fmt.Errorf("schedule: %q: no instant is due", j.name)
	}
	return newDue(f.due, f.next, j.grace), nil
}

// listed is gocron's list of the job's next instants, without those that WithStopAt leaves out.
func (j *job) listed(n int) ([]time.Time, error) {
	next, err := j.Job.NextRuns(n)
	if errors.Is(err, gocron.ErrJobNotFound) && j.over() && !j.removed.Load() {
		return nil, nil // gocron has removed it by itself
	}
	if j.stopAt.IsZero() {
		return next, err
	}
	for i, at := range next {
		if !at.Before(j.stopAt) {
			return next[:i], err
		}
	}
	return next, err
}

// over reports whether WithStopAt leaves no instant any more.
func (j *job) over() bool {
	return !j.stopAt.IsZero() && !j.scheduler.clock.Now().Before(j.stopAt)
}

// A ticket is what gocron unlocks.
type ticket struct{ job *job }

// Unlock gives up a grant whose run never began.
func (t ticket) Unlock(context.Context) error {
	select {
	case g := <-t.job.grants:
		if g.lock != nil {
			_ = g.lock.Unlock(context.Background())
		}
		t.job.scheduler.running.leave()
	default:
	}
	return nil
}

// perform is the task: it runs the tick that was just granted. The run has a goroutine of its own,
// so that one which never returns does not keep gocron from ending.
func (j *job) perform() error {
	var g *grant
	select {
	case g = <-j.grants:
	default:
		return errNoGrant
	}
	done := make(chan error, 1)
	go j.execute(g, done)
	select {
	case err := <-done:
		return err
	case <-j.scheduler.left:
	}
	select {
	case err := <-done:
		return err
	default:
		return errLeft
	}
}

// RunNow runs the job once, on request. It does not block: what comes of it is told to the
// Observer. See Scheduler.Add.
func (j *job) RunNow() error {
	s := j.scheduler
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	switch {
	case state == made:
		return fmt.Errorf("schedule: RunNow %q: %w", j.name, invalid("the scheduler was not started"))
	case j.removed.Load():
		return fmt.Errorf("schedule: RunNow %q: %w", j.name, gocron.ErrJobNotFound)
	case !s.claiming.enter():
		return fmt.Errorf("schedule: RunNow %q: %w", j.name, errShutDown)
	}
	go j.runManual(s.clock.Now())
	return nil
}

// runManual claims and runs what RunNow asked for. It ends with the run.
func (j *job) runManual(at time.Time) {
	s := j.scheduler
	g, err := j.claimer.manual(s.claims, at, j.life())
	if err != nil {
		j.skipped(Tick{Job: j.name, At: at.UTC(), Attempt: 1, Manual: true}, err)
		s.claiming.leave()
		return
	}
	s.running.enter()
	s.claiming.leave()
	j.execute(g, make(chan error, 1))
}

// life is how long the marks of the job's ticks have to live.
func (j *job) life() time.Duration {
	next, err := j.listed(2)
	if err != nil || len(next) < 2 {
		return marksLife
	}
	return newDue(next[0], next[1], j.grace).life()
}

// IsRunning reports whether this replica runs the job, also on request.
func (j *job) IsRunning() (bool, error) { return j.active.Load() > 0, nil }

// Schedule is the schedule as it was given to Add.
func (j *job) Schedule() gocron.JobSchedule { return j.shown }

// NextRun is the job's next instant; the zero time if there is none, or before Start.
func (j *job) NextRun() (time.Time, error) {
	next, err := j.NextRuns(1)
	if err != nil || len(next) == 0 {
		return time.Time{}, err
	}
	return next[0], nil
}

// NextRuns are the job's next instants, in the scheduler's location; fewer if the schedule ends.
func (j *job) NextRuns(n int) ([]time.Time, error) {
	if j.left() {
		return nil, gocron.ErrJobNotFound
	}
	if n <= 0 {
		return nil, nil
	}
	listed, err := j.listed(n)
	var next []time.Time
	for _, at := range lookAt(listed, time.Time{}).all {
		next = append(next, at.In(j.scheduler.location))
	}
	return next, err
}

// LastRun is when this replica last ran a tick of the job.
func (j *job) LastRun() (time.Time, error) {
	//lint:ignore SA1019 users may still call it
	return j.unlessLeft(j.Job.LastRun)
}

// LastRunStartedAt is for gocron.Job.
func (j *job) LastRunStartedAt() (time.Time, error) { return j.unlessLeft(j.Job.LastRunStartedAt) }

// LastRunCompletedAt is for gocron.Job.
func (j *job) LastRunCompletedAt() (time.Time, error) {
	return j.unlessLeft(j.Job.LastRunCompletedAt)
}

// left reports whether Shutdown has left gocron: it would answer nothing any more, after a second.
func (j *job) left() bool {
	select {
	case <-j.scheduler.left:
		return true
	default:
		return false
	}
}

func (j *job) unlessLeft(ask func() (time.Time, error)) (time.Time, error) {
	if j.left() {
		return time.Time{}, gocron.ErrJobNotFound
	}
	return ask()
}

// skipped tells of a tick that is not run here. That another replica has it is nothing to be
// warned of.
func (j *job) skipped(tick Tick, err error) {
	s := j.scheduler
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, redlock.ErrClosed):
		s.log.Debug("schedule: tick given up", "job", tick.Job, "at", tick.At, "reason", err)
	case errors.Is(err, redlock.ErrHeld), errors.Is(err, ErrTickTooEarly):
		s.log.Debug("schedule: tick not run here", "job", tick.Job, "at", tick.At, "reason", err)
	default:
		s.log.Warn("schedule: tick not run", "job", tick.Job, "at", tick.At, "reason", err)
	}
	s.observer.skipped(TickEvent{Tick: tick, Err: err})
}
