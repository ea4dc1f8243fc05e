package schedule

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A plain is a process with a gocron scheduler of its own, as it is, and our Locker.
type plain struct {
	gocron.Scheduler
	fleet  *fleet
	name   string
	locker *Locker

	mu      sync.Mutex // guards refused
	refused []error
}

func (f *fleet) plain(name string, opts ...LockerOption) *plain {
	f.Helper()
	l, err := NewLocker(f.client(name, 0), opts...)
	if err != nil {
		f.Fatal(err)
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(l), gocron.WithLocation(time.UTC))
	if err != nil {
		f.Fatal(err)
	}
	return &plain{Scheduler: s, fleet: f, name: name, locker: l}
}

// job adds a job. A task of plain gocron does not know its tick: it records the interval that it
// began in.
func (p *plain) job(
	name string, when gocron.JobDefinition, interval, takes time.Duration, opts ...gocron.JobOption,
) gocron.Job {
	p.fleet.Helper()
	task := func() {
		defer p.fleet.record.Begin(ticktest.Run{Job: name, Replica: p.name,
			At: gridFloor(time.Now(), interval)})()
		time.Sleep(takes)
	}
	j, err := p.NewJob(when, gocron.NewTask(task), append(opts, gocron.WithName(name),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refused = append(p.refused, err)
		})))...)
	if err != nil {
		p.fleet.Fatal(err)
	}
	return j
}

func (p *plain) bind() {
	p.fleet.Helper()
	if err := p.locker.Bind(p); err != nil {
		p.fleet.Fatal(err)
	}
}

// refusals counts those that match target.
func (p *plain) refusals(target error) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, err := range p.refused {
		if errors.Is(err, target) {
			n++
		}
	}
	return n
}

func (p *plain) stop() {
	p.fleet.Helper()
	if err := p.Shutdown(); err != nil {
		p.fleet.Errorf("%s: Shutdown: %v", p.name, err)
	}
}

// rest lets the runs end before gocron is shut down: its wait for them stands still in a bubble.
const rest = 500 * time.Millisecond

func TestABoundLockerRunsEachTickOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		var all []*plain
		for _, name := range names(3) {
			p := f.plain(name)
			p.job("early", everySecond(), time.Second, time.Millisecond)
			p.bind()
			p.Start()
			p.job("late", everySecond(), time.Second, 0) // learned when it is asked about
			all = append(all, p)
		}
		time.Sleep(time.Minute + rest)
		for _, p := range all {
			p.stop()
		}
		f.record.Once(t)
		f.record.All(t, "early", f.due(time.Second))
		f.record.All(t, "late", f.due(time.Second))
		for _, p := range all {
			if other := len(p.refused) - p.refusals(ErrTickTaken); other > 0 {
				t.Errorf("%s: %d refusals for another reason: %v", p.name, other, p.refused)
			}
		}
	})
}

// gocron 841, 181, 828: three replicas started 1.3 s apart, a DurationJob of 5 s, 50 ticks.
func TestIntervalsThatStartApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*plain
		var jobs []gocron.Job
		time.Sleep(5*time.Second + 300*time.Millisecond)
		for _, name := range names(3) {
			p := f.plain(name)
			jobs = append(jobs, p.job("job", gocron.DurationJob(5*time.Second), 5*time.Second, 0))
			p.bind()
			p.Start()
			all = append(all, p)
			time.Sleep(1300 * time.Millisecond)
		}
		time.Sleep(time.Until(f.began.Add(260*time.Second - 50*time.Millisecond)))
		for _, j := range jobs {
			if next, err := j.NextRun(); err != nil || next.Before(time.Now()) {
				t.Errorf("NextRun: got %v, %v", next, err)
			}
		}
		for _, p := range all {
			p.stop()
		}
		f.record.Once(t)
		f.record.All(t, "job", ticktest.Every(5*time.Second, f.began.Add(9*time.Second), time.Now()))
	})
}

// gocron 925, 538: singleton mode with a queue. A task of 2.5 s each second, 3 replicas, 20 ticks.
func TestQueuedRunsThatLostTheirInstant(t *testing.T) {
	t.Parallel()
	for _, mode := range []gocron.LimitMode{gocron.LimitModeWait, gocron.LimitModeReschedule} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 3)
			var all []*plain
			for _, name := range names(3) {
				p := f.plain(name)
				p.job("job", everySecond(), time.Second, 2500*time.Millisecond,
					gocron.WithSingletonMode(mode), gocron.WithLimitedRuns(1000))
				p.bind()
				p.Start()
				all = append(all, p)
			}
			time.Sleep(20*time.Second + rest)
			for _, p := range all {
				for _, j := range p.Jobs() {
					_ = p.RemoveJob(j.ID())
				}
			}
			time.Sleep(5 * time.Second)
			for _, p := range all {
				p.stop()
			}
			f.record.Once(t)
			f.record.Apart(t)
			if n := len(f.record.Runs("job")); n < 6 || n > 8 {
				t.Errorf("mode %v: %d runs of 2.5 s in 20 s", mode, n)
			}
		})
	}
}

// Update gives a job another schedule under the same name. The first tick of that is already one of
// the new kind: also where a cron becomes an interval, which starts at another moment everywhere.
func TestUpdatedJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		const interval = 10 * time.Second
		var all []*plain
		var jobs []gocron.Job
		for _, name := range names(3) {
			p := f.plain(name)
			jobs = append(jobs, p.job("job", gocron.CronJob("@hourly", false), interval, 0))
			p.bind()
			p.Start()
			all = append(all, p)
		}
		update := func(when func() gocron.JobDefinition) { // not shared: gocron parses into it
			for i, p := range all {
				task := func() {
					f.record.Begin(ticktest.Run{Job: "job", Replica: p.name,
						At: gridFloor(time.Now(), interval)})()
				}
				if _, err := p.Update(jobs[i].ID(), when(), gocron.NewTask(task),
					gocron.WithName("job")); err != nil {
					t.Error(err)
				}
				time.Sleep(300 * time.Millisecond)
			}
		}
		time.Sleep(time.Until(f.began.Add(10 * time.Minute)))
		// First ticks at 10:10.0, 10:10.3, 10:10.6.
		update(func() gocron.JobDefinition { return gocron.DurationJob(interval) })
		time.Sleep(time.Until(f.began.Add(11*time.Minute + 5*time.Second)))
		update(func() gocron.JobDefinition { return gocron.CronJob("15,35 * * * * *", true) })
		time.Sleep(time.Until(f.began.Add(12*time.Minute + 5*time.Second)))
		for _, p := range all {
			p.stop()
		}
		f.record.Once(t)
		at := func(min, s int) time.Time {
			return f.began.Add(time.Duration(min)*time.Minute + time.Duration(s)*time.Second)
		}
		f.record.All(t, "job", []time.Time{at(10, 10), at(10, 20), at(10, 30), at(10, 40), at(10, 50),
			at(11, 0), at(11, 10), at(11, 30)})
	})
}

// gocron 925: limited runs, whose context gocron ends with the last run. Each replica has one run,
// of a tick of its own; the lock is freed all the same, and nothing runs again.
func TestLimitedRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*plain
		for _, name := range names(3) {
			p := f.plain(name)
			if _, err := p.NewJob(everySecond(), gocron.NewTask(func(ctx context.Context) {
				at := gridFloor(time.Now(), time.Second)
				defer f.record.Begin(ticktest.Run{Job: "job", Replica: name, At: at})()
				time.Sleep(300 * time.Millisecond)
				if err := ctx.Err(); err != nil {
					t.Errorf("%s: the task's context at its end: %v", name, err)
				}
				seen, err := p.locker.access.Engine.Inspect(t.Context(), "ql:run:job")
				holder, votes, _ := quorum.Strongest(seen)
				if err != nil || votes < 2 || quorum.Identity(holder) != name {
					t.Errorf("%s: the run lock at the task's end: %d votes of %q, %v", name, votes, holder, err)
				}
			}), gocron.WithName("job"), gocron.WithLimitedRuns(1)); err != nil {
				t.Fatal(err)
			}
			p.bind()
			p.Start()
			all = append(all, p)
		}
		time.Sleep(6*time.Second + rest)
		for _, p := range all {
			p.stop()
		}
		f.check()
		f.record.Apart(t)
		f.record.All(t, "job", f.due(time.Second)[:3])
	})
}

// RunNow has no instant, and uses none up.
func TestRunNowOfPlainGocron(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		p := f.plain("a")
		j := p.job("job", everySecond(), time.Second, 0)
		p.bind()
		p.Start()
		for range 20 {
			time.Sleep(370 * time.Millisecond)
			if err := j.RunNow(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(rest)
		ended := time.Now()
		p.stop()
		f.record.Once(t)
		f.record.All(t, "job", ticktest.Every(time.Second, f.began, ended))
		if n := p.refusals(redlock.ErrInvalid); n < 15 {
			t.Errorf("%d of 20 were refused for having no instant: %v", n, p.refused)
		}
	})
}

func TestBindRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		p := f.plain("a")
		twice := p.job("twice", everySecond(), time.Second, 0)
		p.job("twice", everySecond(), time.Second, 0)
		random := p.job("random", gocron.DurationRandomJob(time.Second, 2*time.Second), time.Second, 0)
		short := p.job("short", gocron.DurationJob(50*time.Millisecond), time.Second, 0)
		near := p.job("near", gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(
			time.Now().Add(time.Hour), time.Now().Add(time.Hour+20*time.Millisecond))), time.Second, 0)
		err := p.locker.Bind(p)
		for _, name := range []string{"twice", "random", "short", "near"} {
			if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("Bind: got %v, want one that names %q", err, name)
			}
		}
		if err := p.locker.Bind(nil); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("Bind(nil): got %v", err)
		}
		for _, j := range []gocron.Job{twice, random, short, near} {
			_ = p.RemoveJob(j.ID())
		}
		p.bind()
		if err := p.locker.Bind(p); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("Bind again: got %v", err)
		}
		// Later on it is Lock that refuses, within learnEvery.
		p.job("twice", everySecond(), time.Second, 0)
		p.Start()
		time.Sleep(learnEvery + 2*time.Second + rest)
		if n := p.refusals(redlock.ErrInvalid); n < 2 {
			t.Errorf("%d refusals of a name that two jobs share: %v", n, p.refused)
		}
		p.stop()
	})
}

func TestLockRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		p := f.plain("a")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var none context.Context
		for name, lock := range map[string]func() (gocron.Lock, error){
			"no context": func() (gocron.Lock, error) { return p.locker.Lock(none, "j") },
			"no name":    func() (gocron.Lock, error) { return p.locker.Lock(t.Context(), "") },
		} {
			if _, err := lock(); !errors.Is(err, redlock.ErrInvalid) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if _, err := p.locker.Lock(ended, "j"); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: got %v", err)
		}
		p.bind()
		if _, err := p.locker.Lock(t.Context(), "j"); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("no such job: got %v", err)
		}
		p.stop()
		for _, opt := range []LockerOption{nil, WithGrace(0), WithGrace(1), WithSpacing(-1),
			WithSpacing(time.Hour)} {
			if _, err := NewLocker(f.client("b", 0), opt); !errors.Is(err, redlock.ErrInvalid) {
				t.Errorf("NewLocker: got %v", err)
			}
		}
		if _, err := NewLocker(nil); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("NewLocker: got %v", err)
		}
	})
}

// Not bound: one run at a time, and none within the spacing, however short the run was.
func TestAnUnboundLocker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var all []*plain
		for i, name := range names(3) {
			p := f.plain(name)
			p.job("job", everySecond(), time.Second, time.Duration(i)*time.Millisecond)
			p.Start()
			all = append(all, p)
		}
		time.Sleep(30*time.Second + rest)
		for _, p := range all {
			p.stop()
		}
		f.record.Once(t)
		f.record.All(t, "job", f.due(time.Second))
		for _, p := range all {
			for _, err := range p.refused {
				wantIs(t, err, taken, redlock.ErrNoQuorum)
			}
		}
	})
}

// A replica that dies during its run: the next tick waits for its lock to end, and not for more.
func TestReplicasThatDie(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		c := f.client("dead", 0)
		l, err := NewLocker(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Lock(t.Context(), "job"); err != nil {
			t.Fatal(err)
		}
		for _, n := range f.nodes.Nodes() {
			n.Cut(c)
		}
		p := f.plain("a")
		p.job("job", everySecond(), time.Second, 0)
		p.bind()
		p.Start()
		time.Sleep(20*time.Second + rest)
		p.stop()
		runs := f.record.Runs("job")
		if len(runs) < 9 || runs[0].Began.Sub(f.began) > 12*time.Second {
			t.Errorf("%d runs: %v", len(runs), runs)
		}
	})
}
