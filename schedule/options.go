package schedule

import (
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// An Option changes what New makes.
type Option func(*options)

type options struct {
	location *time.Location
	logger   *slog.Logger
	observer *Observer
	gocron   []gocron.SchedulerOption
	faults   []error
}

// WithLocation is the zone that schedules are in which name none themselves. It has to be the same
// on all replicas, so the default is UTC and not this machine's.
func WithLocation(location *time.Location) Option {
	return func(o *options) {
		if location == nil {
			o.faults = append(o.faults, invalid("WithLocation: nil"))
			return
		}
		o.location = location
	}
}

// WithLogger is for warnings and errors. Default the client's.
func WithLogger(logger *slog.Logger) Option {
	return func(o *options) {
		if logger == nil {
			o.faults = append(o.faults, invalid("WithLogger: nil"))
			return
		}
		o.logger = logger
	}
}

// WithObserver makes observer be told what becomes of ticks. Default nobody.
func WithObserver(observer *Observer) Option {
	return func(o *options) { o.observer = observer }
}

// WithGocron passes options on to gocron, for monitors, its logger, a limit of concurrent jobs in
// reschedule mode, and listeners of all jobs. New refuses those that would take the ticks out of
// its hands: a clock, a location, an elector, a locker, limits in wait mode, and options of jobs
// that change when they run or how often. A tick that finds gocron's limit reached is not claimed
// by this replica, and the Observer is not told: it is left to the others.
func WithGocron(opts ...gocron.SchedulerOption) Option {
	return func(o *options) { o.gocron = append(o.gocron, opts...) }
}

// A JobOption changes one job.
type JobOption interface{ applyJob(*jobOptions) }

type jobOptions struct {
	grace   time.Duration // 0: default
	overlap Overlap
	tags    []string
	startAt time.Time
	stopAt  time.Time
	policy  gocron.DaylightSavingsTimePolicy // the scheduler's, for all jobs
	faults  []error
}

// jobOption is a JobOption that is nothing else.
type jobOption func(*jobOptions)

func (f jobOption) applyJob(o *jobOptions) { f(o) }

// A LockerOption changes what NewLocker makes.
type LockerOption interface{ applyLocker(*lockerOptions) }

type lockerOptions struct {
	grace   time.Duration // 0: default
	spacing time.Duration
	faults  []error
}

// lockerOption is a LockerOption that is nothing else.
type lockerOption func(*lockerOptions)

func (f lockerOption) applyLocker(o *lockerOptions) { f(o) }

// A GraceOption is for a job and for a Locker.
type GraceOption struct{ grace time.Duration }

// leastGrace is the shortest that nodes can tell: they count milliseconds.
const leastGrace = time.Millisecond

// WithGrace is how long after its instant a tick may still be started, by the nodes' clocks: at
// least 1 ms, and more than a claim takes, a few round trips, or no tick is ever run. Default until
// the job's next instant, at most 30 s. More than that instant is of no use: from then on the next
// tick is what is claimed. A quarter of it, within bounds, is how long a claim outlives a replica
// that dies with it. Use the same on all replicas.
func WithGrace(d time.Duration) GraceOption { return GraceOption{d} }

func (g GraceOption) applyJob(o *jobOptions) {
	o.grace, o.faults = g.grace, append(o.faults, g.faults()...)
}

func (g GraceOption) applyLocker(o *lockerOptions) {
	o.grace, o.faults = g.grace, append(o.faults, g.faults()...)
}

func (g GraceOption) faults() []error {
	if g.grace < leastGrace {
		return []error{invalid("WithGrace(%v): must be at least %v", g.grace, leastGrace)}
	}
	return nil
}

// WithOverlap says what becomes of a tick while a run of the job is under way. Default
// OverlapSkip. Use the same on all replicas.
func WithOverlap(overlap Overlap) JobOption {
	return jobOption(func(o *jobOptions) {
		o.overlap = overlap
		if overlap > OverlapAllow {
			o.faults = append(o.faults, invalid("WithOverlap(%d): unknown", overlap))
		}
	})
}

// WithTags gives the job gocron's tags.
func WithTags(tags ...string) JobOption {
	return jobOption(func(o *jobOptions) { o.tags = append(o.tags, tags...) })
}

// WithStartAt leaves out all instants before t. For jobs by every second or third day, week or
// month it is also where counting begins, and may have passed. Use the same on all replicas.
func WithStartAt(t time.Time) JobOption {
	return jobOption(func(o *jobOptions) {
		o.startAt = t
		if t.IsZero() {
			o.faults = append(o.faults, invalid("WithStartAt: the zero time"))
		}
	})
}

// WithStopAt leaves out all instants from t on. Use the same on all replicas.
func WithStopAt(t time.Time) JobOption {
	return jobOption(func(o *jobOptions) {
		o.stopAt = t
		if t.IsZero() {
			o.faults = append(o.faults, invalid("WithStopAt: the zero time"))
		}
	})
}

// WithSpacing is for a Locker that was not bound: how long after the start of a run none of the
// same job may start. It has to be longer than the replicas' clocks are apart, and shorter than
// the job's interval; at most the client's TTL. Default 500 ms.
func WithSpacing(d time.Duration) LockerOption {
	return lockerOption(func(o *lockerOptions) {
		o.spacing = d
		if d <= 0 {
			o.faults = append(o.faults, invalid("WithSpacing(%v): must be positive", d))
		}
	})
}
