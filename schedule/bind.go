package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// learnEvery is how old what is known of a scheduler's jobs may be when Lock is called, before it
// is looked at again. It is shorter than the shortest interval: the first tick after an Update is
// judged by the new schedule. All jobs that are due at one moment share one look.
const learnEvery = 50 * time.Millisecond

// A boundJob is what a bound Locker knows of one job.
type boundJob struct {
	claimer *claimer

	// These change, under Locker.mu, when the scheduler's jobs are looked at again.
	job      gocron.Job
	interval time.Duration // its ticks are named by the interval that they lie in; 0: they are not
	fault    error         // why it has no ticks

	mu    sync.Mutex  // guards below
	known []time.Time // the instants that were last read
}

// Bind tells the locker which scheduler it is in, so that it knows the instants of ticks. Call it
// once, before the scheduler starts; jobs may be added later. It must not be called from within a
// job. Errors match redlock.ErrInvalid, and then the locker is not bound: it is already, or jobs
// share a name, or have random intervals, or instants less than 100 ms apart.
func (l *Locker) Bind(s gocron.Scheduler) error {
	if s == nil {
		return fmt.Errorf("schedule: Bind: %w", invalid("the scheduler is nil"))
	}
	jobs := s.Jobs()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.scheduler != nil {
		return fmt.Errorf("schedule: Bind: %w", invalid("the locker is bound already"))
	}
	l.learn(jobs)
	var faults []error
	for name, b := range l.jobs {
		if b.fault != nil {
			faults = append(faults, fmt.Errorf("job %q: %w", name, b.fault))
		}
	}
	if len(faults) > 0 {
		l.jobs = nil
		slices.SortFunc(faults, func(a, b error) int {
			return slices.Compare([]byte(a.Error()), []byte(b.Error()))
		})
		return fmt.Errorf("schedule: Bind: %w", errors.Join(faults...))
	}
	l.scheduler = s
	return nil
}

// learn takes in a scheduler's jobs. Called with l.mu held.
func (l *Locker) learn(jobs []gocron.Job) {
	old := l.jobs
	l.jobs, l.learned = make(map[string]*boundJob), time.Now()
	for _, j := range jobs {
		name := j.Name()
		if twice := l.jobs[name]; twice != nil {
			twice.fault = invalid("two jobs share this name: give each its own by gocron.WithName")
			continue
		}
		b := old[name]
		if b == nil {
			b = &boundJob{claimer: &claimer{access: l.access, job: name, now: l.now,
				turns: l.turns}}
		}
		b.job = j
		b.interval, b.fault = intervalOf(j.Schedule())
		l.jobs[name] = b
	}
}

// intervalOf is the interval of a job that has one, from whatever moment it counts.
func intervalOf(schedule gocron.JobSchedule) (time.Duration, error) {
	var interval time.Duration
	switch s := schedule.(type) {
	case gocron.DurationRandomJobSchedule:
		return 0, invalid("a random interval: each replica draws its own instants")
	case gocron.DurationJobSchedule:
		interval = s.Duration
	case gocron.CronJobSchedule:
		every, ok := everyOf(s.Crontab)
		if !ok {
			return 0, nil
		}
		interval = every
	case gocron.OneTimeJobSchedule:
		return 0, checkApart(s.StartAt)
	default:
		return 0, nil
	}
	if interval < leastInterval {
		return 0, invalid("an interval of %v: at least %v", interval, leastInterval)
	}
	return interval, nil
}

// A snapshot is a boundJob at one moment.
type snapshot struct {
	*boundJob
	job      gocron.Job
	interval time.Duration
}

// lookUp finds a job by its name. If it is not known, or not of late, or with anew in any case, the
// scheduler's jobs are looked at again. That happens on a goroutine of its own, because within
// Lock it could wait for a scheduler that waits for Lock.
func (l *Locker) lookUp(ctx context.Context, name string, anew bool) (snapshot, error) {
	for asked := false; ; asked = true {
		l.mu.Lock()
		b := l.jobs[name]
		switch known := !anew && time.Since(l.learned) <= learnEvery; {
		case b != nil && (known || asked):
			defer l.mu.Unlock()
			return snapshot{b, b.job, b.interval}, b.fault
		case asked:
			l.mu.Unlock()
			return snapshot{}, invalid("the scheduler that the locker is bound to has no such job")
		}
		learning := l.startLearning()
		l.mu.Unlock()
		select {
		case <-learning:
		case <-ctx.Done():
			return snapshot{}, ctx.Err()
		}
	}
}

// startLearning looks at the scheduler's jobs, unless that is under way. Called with l.mu held.
func (l *Locker) startLearning() <-chan struct{} {
	if l.learning == nil {
		done := make(chan struct{})
		l.learning = done
		go func() {
			jobs := l.scheduler.Jobs() // nil after its Shutdown
			l.mu.Lock()
			defer l.mu.Unlock()
			if jobs != nil {
				l.learn(jobs)
			}
			l.learning = nil
			close(done)
		}()
	}
	return l.learning
}

// find is the instant that is due. After a run on request the list can be empty just when a tick
// is due, because that run has cleared it: then what was read before says when it is.
func (s snapshot) find(ctx context.Context, now func() time.Time) (finding, error) {
	f, err := awaitInstant(ctx, s.job.NextRuns, now)
	if err != nil {
		return f, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.empty() {
		return lookAt(s.known, now()), nil
	}
	s.known = slices.Clone(f.all)
	return f, nil
}
