package schedule

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

func noon() gocron.AtTimes { return gocron.NewAtTimes(gocron.NewAtTime(12, 0, 0)) }

// What would mean different instants on different replicas, or makes gocron hang, is refused with a
// word about what to do.
func TestAddRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		r.job("taken", everySecond(), 0)
		past, soon := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
		for name, c := range map[string]struct {
			job  string
			when gocron.JobDefinition
			opts []JobOption
			says string
		}{
			"no name":            {"", everySecond(), nil, "name is empty"},
			"a long name":        {strings.Repeat("x", 1025), everySecond(), nil, "1025 bytes"},
			"a name twice":       {"taken", everySecond(), nil, "taken by another job"},
			"no definition":      {"j", nil, nil, "definition is nil"},
			"an empty one":       {"j", struct{ gocron.JobDefinition }{}, nil, "panics"},
			"no cron":            {"j", gocron.CronJob("hello", false), nil, "crontab"},
			"seconds unasked":    {"j", gocron.CronJob("* * * * * *", false), nil, "crontab"},
			"@reboot":            {"j", gocron.CronJob("@reboot", false), nil, "crontab"},
			"a day that is none": {"j", gocron.CronJob("0 0 30 2 *", false), nil, "crontab"},
			"a random interval": {"j", gocron.DurationRandomJob(time.Second, 2*time.Second), nil,
				"random interval"},
			"a short interval": {"j", gocron.DurationJob(99 * time.Millisecond), nil, "at least 100ms"},
			"no interval":      {"j", gocron.DurationJob(0), nil, ""},
			"below zero":       {"j", gocron.DurationJob(-time.Second), nil, ""},
			"every second day": {"j", gocron.DailyJob(2, noon()), nil, "WithStartAt"},
			"every third week": {"j", gocron.WeeklyJob(3, gocron.NewWeekdays(time.Monday), noon()), nil,
				"WithStartAt"},
			"every second month": {"j", gocron.MonthlyJob(2, gocron.NewDaysOfTheMonth(1), noon()), nil,
				"WithStartAt"},
			"once, at once": {"j", gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), nil,
				"RunNow"},
			"once, in the past": {"j", gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(past)), nil, ""},
			"once, before the start": {"j",
				gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Now().Add(time.Hour))),
				[]JobOption{WithStartAt(time.Now().Add(2 * time.Hour))}, "WithStartAt"},
			"no grace":     {"j", everySecond(), []JobOption{WithGrace(0)}, "WithGrace"},
			"tiny grace":   {"j", everySecond(), []JobOption{WithGrace(1)}, "at least 1ms"},
			"an overlap":   {"j", everySecond(), []JobOption{WithOverlap(7)}, "WithOverlap"},
			"a nil option": {"j", everySecond(), []JobOption{nil}, "nil"},
			"stopped":      {"j", everySecond(), []JobOption{WithStopAt(past)}, "WithStopAt"},
			"stopped before the start": {"j", everySecond(),
				[]JobOption{WithStartAt(soon.Add(time.Hour)), WithStopAt(soon)}, "WithStopAt"},
			"once, after the stop": {"j",
				gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(soon)), []JobOption{WithStopAt(soon)},
				"WithStopAt"},
			"twice, too near": {"j", gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(
				soon.Add(99*time.Millisecond), soon)), nil, "99ms apart: at least 100ms"},
			"the zero time":     {"j", everySecond(), []JobOption{WithStopAt(time.Time{})}, "zero time"},
			"another zero time": {"j", everySecond(), []JobOption{WithStartAt(time.Time{})}, "zero time"},
		} {
			_, err := r.Add(c.job, c.when, r.records(0), c.opts...)
			if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %v, want one that matches ErrInvalid and says %q", name, err, c.says)
			}
		}
		if _, err := r.Add("j", everySecond(), nil); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("no run: got %v", err)
		}
		r.job("j", everySecond(), 0) // the name was not taken by what was refused
		r.Start()
		r.stop()
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		c := f.client("a", 0)
		if _, err := New(nil); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("no client: got %v", err)
		}
		global := func(opts ...gocron.JobOption) gocron.SchedulerOption {
			return gocron.WithGlobalJobOptions(opts...)
		}
		l, err := NewLocker(c)
		if err != nil {
			t.Fatal(err)
		}
		for says, opt := range map[string]Option{
			"an Option is nil": nil,
			"WithLogger":       WithLogger(nil),
			"option 1 is nil":  WithGocron(nil),
			"WithLocation":     WithGocron(gocron.WithLocation(time.UTC)),
			"WithDistributedLocker": WithGocron(gocron.WithStopTimeout(time.Second),
				gocron.WithDistributedLocker(l)),
			"WithClock":           WithGocron(gocron.WithClock(newTickClock(l.access))),
			"wait mode":           WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)),
			"WithName":            WithGocron(global(gocron.WithName("x"))),
			"WithIdentifier":      WithGocron(global(gocron.WithIdentifier(uuid.New()))),
			"WithContext":         WithGocron(global(gocron.WithContext(t.Context()))),
			"WithLimitedRuns":     WithGocron(global(gocron.WithTags("x"), gocron.WithLimitedRuns(1))),
			"WithSingletonMode":   WithGocron(global(gocron.WithSingletonMode(gocron.LimitModeWait))),
			"WithStartImmediate":  WithGocron(global(gocron.WithStartAt(gocron.WithStartImmediately()))),
			"WithIntervalFrom":    WithGocron(global(gocron.WithIntervalFromCompletion())),
			"WithDistributedJob":  WithGocron(global(gocron.WithDistributedJobLocker(l))),
			"WithDisabledDistrib": WithGocron(global(gocron.WithDisabledDistributedJobLocker(true))),
			"WithCronImplement":   WithGocron(global(gocron.WithCronImplementation(cron{}))),
			"on record as run": WithGocron(global(gocron.WithEventListeners(
				gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return nil })))),
		} {
			_, err := New(c, opt)
			if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want one that matches ErrInvalid and says %q", err, says)
			}
		}
		s, err := New(c, WithGocron(gocron.WithStopTimeout(time.Second),
			gocron.WithLimitConcurrentJobs(9, gocron.LimitModeReschedule), global(gocron.WithTags("x"))))
		if err != nil {
			t.Fatalf("options that harm nothing: %v", err)
		}
		_ = s.Shutdown(t.Context())
	})
}

// Every schedule that is not refused has the same instants on replicas that start at different
// moments, and each is run once.
func TestReplicasAgreeOnInstants(t *testing.T) {
	t.Parallel()
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	start := time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC) // a bubble begins on 2000-01-01
	at := func(all ...time.Duration) (times []time.Time) {
		for _, d := range all {
			times = append(times, start.Add(d-days(2)))
		}
		return times
	}
	hours := func(list ...int) (times []time.Time) {
		for _, h := range list {
			times = append(times, start.Add(-days(2)).Add(time.Duration(h)*time.Hour))
		}
		return times
	}
	for name, c := range map[string]struct {
		when func() gocron.JobDefinition
		opts []JobOption
		want []time.Time
	}{
		"interval": {func() gocron.JobDefinition { return gocron.DurationJob(31 * time.Hour) }, nil,
			ticktest.Every(31*time.Hour, at(0)[0], at(days(5))[0])},
		"@every": {func() gocron.JobDefinition { return gocron.CronJob("@every 31h", false) }, nil,
			ticktest.Every(31*time.Hour, at(0)[0], at(days(5))[0])},
		"interval with a start": {
			func() gocron.JobDefinition { return gocron.DurationJob(7 * time.Hour) },
			[]JobOption{WithStartAt(start), WithStopAt(start.Add(days(1)))},
			ticktest.Every(7*time.Hour, start, start.Add(days(1)-1))},
		"every day": {func() gocron.JobDefinition { return gocron.DailyJob(1, noon()) }, nil,
			hours(12, 36, 60, 84, 108)},
		"every day from then on": {func() gocron.JobDefinition { return gocron.DailyJob(1, noon()) },
			[]JobOption{WithStartAt(start)}, hours(60, 84, 108)},
		"every second day": {func() gocron.JobDefinition { return gocron.DailyJob(2, noon()) },
			[]JobOption{WithStartAt(start)}, hours(60, 108)},
		"every second day since long ago": {
			func() gocron.JobDefinition { return gocron.DailyJob(2, noon()) },
			[]JobOption{WithStartAt(start.Add(-days(200)))}, hours(12, 60, 108)},
		"every second week": {func() gocron.JobDefinition {
			return gocron.WeeklyJob(2, gocron.NewWeekdays(time.Sunday, time.Tuesday), noon())
		}, []JobOption{WithStartAt(start.Add(-days(1)))}, hours(36, 84)},
		"every second week, the other one": {func() gocron.JobDefinition {
			return gocron.WeeklyJob(2, gocron.NewWeekdays(time.Sunday, time.Tuesday), noon())
		}, []JobOption{WithStartAt(start.Add(-days(8)))}, nil},
		"every third month": {func() gocron.JobDefinition {
			return gocron.MonthlyJob(3, gocron.NewDaysOfTheMonth(4, -1), noon())
		}, []JobOption{WithStartAt(time.Date(1999, 10, 1, 0, 0, 0, 0, time.UTC))}, hours(84)},
		"cron with a start": {
			func() gocron.JobDefinition { return gocron.CronJob("0 */12 * * *", false) },
			[]JobOption{WithStartAt(start.Add(time.Hour)), WithStopAt(start.Add(days(1)))}, hours(60)},
		"once": {func() gocron.JobDefinition {
			return gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(start.Add(time.Hour)))
		}, nil, hours(49)},
		"three times": {func() gocron.JobDefinition {
			return gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(start.Add(2*time.Hour),
				start.Add(time.Hour), start.Add(time.Hour), start.Add(3*time.Hour)))
		}, nil, hours(49, 50, 51)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 3)
				var all []*replica
				for _, name := range names(3) {
					r := f.replica(name, 0)
					r.clock.every = time.Hour // days of virtual time
					r.job("job", c.when(), time.Second, c.opts...)
					r.Start()
					all = append(all, r)
					time.Sleep(137 * time.Minute)
				}
				time.Sleep(time.Until(at(days(5))[0]))
				f.stop(all)
				f.check()
				f.record.All(t, "job", c.want)
			})
		})
	}
}

// The list that gocron goes by has zones of its own where two instants have the same wall-clock
// text: each second has ten of an interval of 100 ms, and in autumn there is an hour twice. They
// are not shown.
func TestNextRunIsInTheSchedulersLocation(t *testing.T) {
	t.Parallel()
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		interval time.Duration
		began    time.Time // a minute before something
		wait     time.Duration
		want     string
	}{
		"short": {100 * time.Millisecond, time.Date(2026, 10, 31, 4, 0, 0, 0, time.UTC),
			10*time.Second + 50*time.Millisecond, "2026-10-31 00:00:10.1 -0400 EDT"},
		"the same hour again": {time.Hour, time.Date(2026, 11, 1, 5, 0, 0, 0, time.UTC),
			time.Minute, "2026-11-01 01:00:00 -0500 EST"},
		"and after it": {time.Hour, time.Date(2026, 11, 1, 4, 59, 0, 0, time.UTC),
			4 * time.Hour, "2026-11-01 04:00:00 -0500 EST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(c.began))
				f := newFleet(t, 3)
				r := f.replica("a", 0, WithLocation(york))
				j := r.job("job", gocron.DurationJob(c.interval), 0)
				r.Start()
				time.Sleep(c.wait)
				if next, err := j.NextRun(); err != nil || next.String() != c.want {
					t.Errorf("got %v, %v, want %s", next, err, c.want)
				}
				r.stop()
			})
		})
	}
}

// An interval that starts so late that there is no number for it: no instants, and no loop without
// an end in gocron.
func TestAnIntervalThatNeverStarts(t *testing.T) {
	t.Parallel()
	for _, year := range []int{2263, 9999} {
		far := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if at := (grid{interval: time.Second, from: far}).after(time.Now()); !at.Equal(never) {
			t.Fatalf("from %v on: %v comes next, want none", far, at)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		far := WithStartAt(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
		r.job("interval", gocron.DurationJob(time.Second), 0, far)
		r.job("cron", everySecond(), 0, far)
		r.job("daily", gocron.DailyJob(2, noon()), 0, far)
		r.job("other", everySecond(), 0)
		r.Start()
		time.Sleep(3500 * time.Millisecond)
		r.stop()
		if all, other := f.record.Runs(""), f.record.Runs("other"); len(all) != 3 || len(other) != 3 {
			t.Errorf("%d runs, %d of the other job, want its 3", len(all), len(other))
		}
	})
}

// Every instant before WithStopAt runs, however near it is: timers always fire a bit late. It has
// no bubble, where they do not.
func TestTheLastInstantBeforeTheStop(t *testing.T) {
	t.Parallel()
	nodes := redlocktest.Start(t, 3)
	c, err := nodes.Client(redlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c, WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan time.Time, 100)
	last := time.Now().Truncate(time.Second).Add(2 * time.Second)
	if _, err := s.Add("job", everySecond(), func(_ context.Context, tick Tick) error {
		ran <- tick.At
		return nil
	}, WithStopAt(last.Add(time.Nanosecond))); err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { _ = s.Shutdown(context.Background()) }()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case at := <-ran:
			if at.Equal(last) {
				return
			}
		case <-timeout:
			t.Fatalf("the tick at %v did not run", last)
		}
	}
}

// From WithStopAt on nothing runs, is told of, or is to come; and the job is still one that can be
// run on request.
func TestAfterTheStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		stop := f.began.Add(3 * time.Second)
		jobs := []gocron.Job{
			r.job("cron", everySecond(), 0, WithStopAt(stop)),
			r.job("interval", gocron.DurationJob(time.Second), 0, WithStopAt(stop)),
			r.job("daily", gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(0, 0, 1),
				gocron.NewAtTime(0, 0, 2), gocron.NewAtTime(0, 0, 3), gocron.NewAtTime(0, 0, 4))), 0,
				WithStopAt(stop)),
		}
		r.Start()
		time.Sleep(1500 * time.Millisecond)
		if next, err := jobs[0].NextRuns(3); err != nil || len(next) != 1 {
			t.Errorf("NextRuns with one instant left: got %v, %v", next, err)
		}
		for _, wait := range []time.Duration{5 * time.Second, 2 * time.Minute} {
			time.Sleep(wait)
			for _, j := range jobs {
				if next, err := j.NextRun(); err != nil || !next.IsZero() {
					t.Errorf("%s: NextRun %v after the stop: got %v, %v", j.Name(), wait, next, err)
				}
			}
		}
		for _, j := range jobs {
			f.record.All(t, j.Name(), []time.Time{stop.Add(-2 * time.Second), stop.Add(-time.Second)})
			if err := j.RunNow(); err != nil {
				t.Errorf("%s: RunNow after the stop: %v", j.Name(), err)
			}
		}
		time.Sleep(time.Second)
		if n := len(f.record.Runs("")); n != 9 {
			t.Errorf("%d runs, want two ticks and a run on request of each job", n)
		}
		for _, j := range jobs {
			if err := r.Remove(j.Name()); err != nil {
				t.Error(err)
			}
			if _, err := j.NextRun(); !errors.Is(err, gocron.ErrJobNotFound) {
				t.Errorf("%s: NextRun of a removed job: got %v", j.Name(), err)
			}
		}
		r.stop()
		f.check()
		if len(f.skipped) > 0 {
			t.Errorf("told of ticks after the stop: %v", f.skipped)
		}
	})
}

// A one-time job whose time passes between Add and Start, or while nothing can be decided, makes
// gocron's own spin for ever.
func TestOneTimeJobsWhoseTimeHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		once := gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Now().Add(time.Minute)))
		j := r.job("once", once, 0)
		r.job("other", everySecond(), 0)
		time.Sleep(2 * time.Minute)
		r.Start()
		time.Sleep(1100 * time.Millisecond)
		if next, err := j.NextRun(); err != nil || !next.IsZero() {
			t.Errorf("NextRun of a job that is over: got %v, %v", next, err)
		}
		twice := gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(time.Now().Add(time.Second),
			time.Now().Add(2*time.Second)))
		r.job("twice", twice, 0)
		for _, n := range f.nodes.Nodes() {
			n.Cut()
		}
		time.Sleep(time.Minute)
		for _, n := range f.nodes.Nodes() {
			n.Heal()
		}
		time.Sleep(5 * time.Second)
		r.stop()
		if n := len(f.record.Runs("other")); n < 4 {
			t.Errorf("the other job ran %d times", n)
		}
		if runs := f.record.Runs("once"); len(runs) > 0 {
			t.Errorf("ran after its time: %v", runs)
		}
	})
}

// gocron keeps what it parsed in the definition. Here one may be used twice, in two locations too.
func TestADefinitionUsedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		york, err := time.LoadLocation("America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		when := gocron.CronJob("0 6 * * *", false)
		a := f.replica("a", 0, WithLocation(york))
		b := f.replica("b", 0)
		a.job("york", when, 0)
		a.Start()
		b.job("utc", when, 0)
		b.job("utc too", when, 0)
		b.Start()
		time.Sleep(24 * time.Hour)
		f.stop([]*replica{a, b})
		f.record.All(t, "york", []time.Time{time.Date(2000, 1, 1, 11, 0, 0, 0, time.UTC)})
		f.record.All(t, "utc", []time.Time{time.Date(2000, 1, 1, 6, 0, 0, 0, time.UTC)})
		f.record.All(t, "utc too", []time.Time{time.Date(2000, 1, 1, 6, 0, 0, 0, time.UTC)})
	})
}

// gocron 472, 710: names of any kind are kept apart, and so are applications by their prefix.
func TestNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		r := f.replica("a", 0)
		all := []string{"a b", "{a}", "a:b", "a", "ql:job:a", "ql:run:a", "ä\x00\xff", "A",
			strings.Repeat("x", redlock.MaxNameLen)}
		for _, name := range all {
			r.job(name, everySecond(), 0)
		}
		c, err := f.nodes.Client(redlock.Config{Prefix: "app:"})
		if err != nil {
			t.Fatal(err)
		}
		other, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		if _, err := other.Add("a", everySecond(), func(context.Context, Tick) error {
			ran++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		r.Start()
		other.Start()
		time.Sleep(3500 * time.Millisecond)
		r.stop()
		if err := other.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		f.check()
		for _, name := range all {
			f.record.All(t, name, f.due(time.Second)[:3])
		}
		if ran != 3 {
			t.Errorf("the other application's job ran %d times, want 3", ran)
		}
	})
}
