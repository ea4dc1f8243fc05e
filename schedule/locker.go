package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/window"
	"github.com/quorumlock/quorumlock/redlock"
)

// DefaultSpacing is the default of WithSpacing.
const DefaultSpacing = 500 * time.Millisecond

// A Locker is gocron's distributed locker, for those who keep their own gocron scheduler:
//
//	l, err := schedule.NewLocker(client)
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(l))
//	err = l.Bind(s)
//
// Bound, it knows the scheduled instant of each tick, and every tick runs on at most one replica,
// whatever the clocks say. The instant of an interval job is the interval, counted from the epoch,
// so that replicas which started at different moments run it once per interval. Of all other jobs
// the instants have to be the same on all replicas, or each replica runs its own. So do not use
// what gocron takes from a replica's own clock or runs, and does not show a locker: a first run at
// once (WithStartImmediately), intervals from completion, every second day, week or month without
// a WithStartAt that is the same everywhere; and give gocron.WithLocation, because its default is
// the zone of the machine. The Scheduler of this package refuses these. WithLimitedRuns counts the
// runs of each replica by itself. A job may be updated at any time, under its name.
//
// Not bound, it knows no instants and is weaker: at most one run of a job at a time, and none
// within WithSpacing of the last start. A replica whose clock is off by more runs the tick again.
//
// Either way a run holds a lock until it ends, so ticks of the same job meanwhile are skipped.
// gocron's task is not told when that lock is lost; the Scheduler of this package tells. Its
// methods may be called concurrently.
type Locker struct {
	access  door.Access
	grace   time.Duration
	spacing time.Duration
	turns   *window.Window // of claims

	mu        sync.Mutex // guards below
	scheduler gocron.Scheduler
	jobs      map[string]*boundJob
	learned   time.Time
	learning  chan struct{} // closed when what is under way is done; nil: nothing is
}

// NewLocker makes a Locker. It does not block. All faults of the options are in one error that
// matches redlock.ErrInvalid.
func NewLocker(c *redlock.Client, opts ...LockerOption) (*Locker, error) {
	access := door.Open(c)
	if access.Engine == nil {
		return nil, fmt.Errorf("schedule: NewLocker: %w", invalid("the client is nil"))
	}
	o := lockerOptions{spacing: min(DefaultSpacing, access.TTL)}
	for _, opt := range opts {
		if opt == nil {
			o.faults = append(o.faults, invalid("a LockerOption is nil"))
			continue
		}
		opt.applyLocker(&o)
	}
	if o.spacing > access.TTL {
		o.faults = append(o.faults, invalid("WithSpacing(%v): above the client's TTL, %v",
			o.spacing, access.TTL))
	}
	if err := errors.Join(o.faults...); err != nil {
		return nil, fmt.Errorf("schedule: NewLocker: %w", err)
	}
	return &Locker{access: access, grace: o.grace, spacing: o.spacing,
		turns: newTurns(access.NodeTimeout)}, nil
}

// Lock is for gocron.Locker. It blocks until the tick is decided: a few round trips, where another
// replica died with its claim until that ends, at most until Grace is over or the job's next
// instant is near, or ctx ends.
//
// Errors: ErrTickTaken and the others beside it. redlock.ErrInvalid: the job has no name, shares it
// with another, has a random interval or one that is too short; or no instant of it is due: a run
// by RunNow, one that waited in a queue of gocron's until its instant was lost, or a clock that was
// set back. redlock.ErrClosed. ctx's error.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	if ctx == nil {
		return nil, fmt.Errorf("schedule: Lock: %w", invalid("the context is nil"))
	}
	if err := checkJobName(job); err != nil {
		return nil, fmt.Errorf("schedule: Lock: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("schedule: Lock %q: %w", job, err)
	}
	l.mu.Lock()
	bound := l.scheduler != nil
	l.mu.Unlock()
	if !bound {
		return l.lockUnbound(ctx, job)
	}
	b, d, err := l.due(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("schedule: Lock %q: %w", job, err)
	}
	g, err := b.claimer.claim(ctx, d)
	if err != nil {
		return nil, err
	}
	return g.lock, nil
}

// lockUnbound is for a job whose instants are not known.
func (l *Locker) lockUnbound(ctx context.Context, job string) (gocron.Lock, error) {
	got, err := l.access.Lock(ctx, "ql:run:"+job, false, redlock.WithMinHold(l.spacing))
	if err == nil {
		return got.(*redlock.Lock), nil
	}
	kind := ErrTickUndecided
	if errors.Is(err, redlock.ErrHeld) {
		kind = ErrTickTaken
	}
	return nil, &tickError{kind: kind, job: job, at: l.now(), cause: err}
}

// now is the clock that the user's scheduler goes by: this machine's.
func (l *Locker) now() time.Time { return l.access.Clock.Now().Time() }

// due finds the tick that a call of Lock is for.
func (l *Locker) due(ctx context.Context, name string) (snapshot, due, error) {
	for again := false; ; again = true {
		b, err := l.lookUp(ctx, name, again)
		if err != nil {
			return snapshot{}, due{}, err
		}
		f, err := b.find(ctx, l.now)
		switch {
		case errors.Is(err, gocron.ErrJobNotFound) && !again:
			continue // it was removed, and perhaps added anew
		case err != nil:
			return snapshot{}, due{}, err
		case f.due.IsZero():
			return snapshot{}, due{}, invalid("no instant is due: a run by RunNow, or one that waited" +
				" in a queue, or the clock was set back")
		}
		d := newDue(f.due, f.next, l.grace)
		if b.interval > 0 {
			d = d.inInterval(b.interval)
		}
		return b, d, nil
	}
}
