package schedule

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/quorumlock/quorumlock/redlock"
)

// A plan is a job's schedule as gocron is given it, so that all replicas have the same instants.
type plan struct {
	shown      gocron.JobSchedule // what the user asked for
	definition gocron.JobDefinition
	options    []gocron.JobOption
	location   *time.Location // the scheduler's
}

// newPlan aligns a schedule, or refuses it. now is by the nodes' clocks.
func newPlan(
	when gocron.JobDefinition, location *time.Location, now time.Time, o jobOptions,
) (plan, error) {
	shown, err := probe(when, location, now)
	if err != nil {
		return plan{}, err
	}
	if err := checkEnds(o, now); err != nil {
		return plan{}, err
	}
	p := plan{shown: shown, location: location}
	switch s := shown.(type) {
	case gocron.CronJobSchedule:
		err = p.planCron(s.Crontab, now, o.startAt)
	case gocron.DurationJobSchedule:
		err = p.planGrid(s.Duration, o.startAt)
	case gocron.DurationRandomJobSchedule:
		err = invalid("a random interval: each replica would draw its own instants")
	case gocron.OneTimeJobSchedule:
		err = p.planInstants(s.StartAt, now, o)
	case gocron.DailyJobSchedule:
		err = p.planCalendar(when, s.Interval, "days", now, o)
	case gocron.WeeklyJobSchedule:
		err = p.planCalendar(when, s.Interval, "weeks", now, o)
	case gocron.MonthlyJobSchedule:
		err = p.planCalendar(when, s.Interval, "months", now, o)
	default:
		err = invalid("a schedule of the unknown type %T", shown)
	}
	if err == nil && !o.stopAt.IsZero() {
		// gocron drops an instant when its timer fires only after the stop. So it stops later, when
		// every tick's Grace is over, and what lies in between is left out by the job.
		end := o.stopAt.Add(max(mostGrace, o.grace))
		p.options = append(p.options, gocron.WithStopAt(gocron.WithStopDateTime(end)))
	}
	return p, err
}

// checkEnds refuses a first and a last moment that leave no instant.
func checkEnds(o jobOptions, now time.Time) error {
	switch {
	case o.stopAt.IsZero():
		return nil
	case !o.stopAt.After(now):
		return invalid("WithStopAt(%v): has passed", o.stopAt)
	case !o.startAt.Before(o.stopAt):
		return invalid("WithStopAt(%v): not after WithStartAt, %v", o.stopAt, o.startAt)
	}
	return nil
}

// planGrid is for an interval: its instants are the multiples since the epoch. gocron's own would
// count from each replica's start.
func (p *plan) planGrid(interval time.Duration, from time.Time) error {
	if interval < leastInterval {
		return invalid("an interval of %v: at least %v", interval, leastInterval)
	}
	p.use(grid{interval: interval, from: from})
	return nil
}

// use makes gocron go by a calendar of ours.
func (p *plan) use(c calendar) {
	p.definition = gocron.CronJob("calendar", false)
	p.options = append(p.options, gocron.WithCronImplementation(cron{c, p.location}))
}

// planCron makes a definition of its own: gocron keeps the parsed schedule in the definition, so
// that one that is used twice, in two locations, would change the first job's times. The form with
// seconds reads all that the one without does.
func (p *plan) planCron(tab string, now, from time.Time) error {
	if every, ok := everyOf(tab); ok {
		return p.planGrid(every, from)
	}
	if !from.After(now) {
		p.definition = gocron.CronJob(tab, true)
		return nil
	}
	parsed := gocron.NewDefaultCron(true)
	if err := parsed.IsValid(tab, p.location, from); err != nil {
		return invalid("%v", err)
	}
	p.use(cronFrom{cron: parsed, from: from})
	return nil
}

// everyOf is the interval of a crontab of the form @every. Its parser takes whole seconds, and at
// least one.
func everyOf(tab string) (time.Duration, bool) {
	if strings.HasPrefix(tab, "TZ=") || strings.HasPrefix(tab, "CRON_TZ=") {
		_, tab, _ = strings.Cut(tab, " ")
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(tab), "@every ")
	if !ok {
		return 0, false
	}
	every, err := time.ParseDuration(text)
	return max(every.Truncate(time.Second), time.Second), err == nil
}

// planInstants is for a one-time job.
func (p *plan) planInstants(at []time.Time, now time.Time, o jobOptions) error {
	if len(at) == 0 {
		return invalid("a one-time job that starts immediately: use RunNow")
	}
	var left instants
	for _, t := range at {
		t = t.UTC().Truncate(time.Millisecond)
		if t.After(now) && !t.Before(o.startAt) && (o.stopAt.IsZero() || t.Before(o.stopAt)) {
			left = append(left, t)
		}
	}
	if len(left) == 0 {
		return invalid("a one-time job whose time has passed, or is before WithStartAt" +
			" or not before WithStopAt")
	}
	slices.SortFunc(left, time.Time.Compare)
	left = slices.CompactFunc(left, time.Time.Equal)
	p.use(left)
	return checkApart(left)
}

// checkApart refuses instants, in their order, that are too near to each other to be told apart
// when a timer fires.
func checkApart(at []time.Time) error {
	for i := 1; i < len(at); i++ {
		if apart := at[i].Sub(at[i-1]); apart < leastInterval {
			return invalid("a one-time job with instants that are %v apart: at least %v",
				apart, leastInterval)
		}
	}
	return nil
}

// planCalendar is for jobs by days, weeks or months. Of every second or third of these the phase
// counts from the start, so that has to be the same on all replicas.
func (p *plan) planCalendar(
	when gocron.JobDefinition, interval uint, unit string, now time.Time, o jobOptions,
) error {
	from := o.startAt
	p.definition = when
	switch {
	case interval > 1 && from.IsZero():
		return invalid("every %d %s: from when on? Give WithStartAt, the same on all replicas",
			interval, unit)
	case from.IsZero(), interval == 1 && !from.After(now):
		return nil
	}
	first, err := firstFrom(eachPeriod(p.shown), p.location, from, o.policy)
	if err != nil {
		return err
	}
	p.options = append(p.options,
		gocron.WithStartAt(gocron.WithStartDateTimePast(first.In(p.location))))
	return nil
}

// eachPeriod is a schedule by days, weeks or months without leaving any out: the first instant of
// that, from a moment on, is where those that leave some out begin to count.
func eachPeriod(shown gocron.JobSchedule) gocron.JobDefinition {
	switch s := shown.(type) {
	case gocron.DailyJobSchedule:
		return gocron.DailyJob(1, atTimes(s.AtTimes))
	case gocron.WeeklyJobSchedule:
		return gocron.WeeklyJob(1, func() []time.Weekday { return slices.Clone(s.DaysOfWeek) },
			atTimes(s.AtTimes))
	case gocron.MonthlyJobSchedule:
		days := slices.Concat(s.Days, s.DaysFromEnd)
		return gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(days[0], days[1:]...),
			atTimes(s.AtTimes))
	}
	return nil
}

// atTimes are times of day as gocron takes them. It shows them as dates, of which only the time
// counts.
func atTimes(shown []time.Time) gocron.AtTimes {
	return func() (all []gocron.AtTime) {
		for _, at := range shown {
			all = append(all, gocron.NewAtTime(uint(at.Hour()), uint(at.Minute()), uint(at.Second())))
		}
		return all
	}
}

// probing is held while a definition is given to a scheduler that is thrown away: some keep what
// they parsed in themselves.
var probing sync.Mutex

// probe is what gocron makes of a definition.
func probe(
	when gocron.JobDefinition, location *time.Location, now time.Time,
) (shown gocron.JobSchedule, err error) {
	err = onScratch(when, location, now, func(_ gocron.Scheduler, j gocron.Job) error {
		shown = j.Schedule()
		return nil
	})
	return shown, err
}

// firstFrom is the first instant of a definition that is not before from.
func firstFrom(
	when gocron.JobDefinition, location *time.Location, from time.Time,
	policy gocron.DaylightSavingsTimePolicy,
) (first time.Time, err error) {
	err = onScratch(when, location, from.Add(-1), func(s gocron.Scheduler, j gocron.Job) error {
		s.Start()
		first, err = j.NextRun()
		return err
	}, gocron.WithDaylightSavingsTimePolicy(policy))
	return first, err
}

// onScratch gives a definition to a scheduler whose clock stands still, so that it runs nothing.
func onScratch(
	when gocron.JobDefinition, location *time.Location, now time.Time,
	look func(gocron.Scheduler, gocron.Job) error, opts ...gocron.JobOption,
) (err error) {
	if when == nil {
		return invalid("the job definition is nil")
	}
	probing.Lock()
	defer probing.Unlock()
	defer func() {
		if v := recover(); v != nil {
			err = invalid("the job definition panics: %v", v)
		}
	}()
	s, err := gocron.NewScheduler(gocron.WithLocation(location),
		gocron.WithClock(clockwork.NewFakeClockAt(now)))
	if err != nil {
		return err
	}
	defer func() { _ = s.Shutdown() }()
	j, err := s.NewJob(when, gocron.NewTask(func() {}), opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", redlock.ErrInvalid, err)
	}
	return look(s, j)
}
