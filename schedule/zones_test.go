package schedule

import (
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // so that no test depends on what zones the machine knows

	"github.com/go-co-op/gocron/v2"
)

// The nights when daylight saving begins and ends in New York, as gocron has them; instants in
// UTC. Two replicas, in the same zone; each instant is one tick.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	daily := func(h, m uint) gocron.JobDefinition {
		return gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(h, m, 0)))
	}
	cron := func(tab string) gocron.JobDefinition { return gocron.CronJob(tab, false) }
	autumn := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	spring := time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		when           func() gocron.JobDefinition
		location       *time.Location
		autumn, spring []string // between 03:45 and 09:15
	}{
		"cron 01:30": {func() gocron.JobDefinition { return cron("30 1 * * *") }, york,
			[]string{"05:30"}, []string{"06:30"}},
		"cron 01:30 by its own zone": {
			func() gocron.JobDefinition { return cron("CRON_TZ=America/New_York 30 1 * * *") }, time.UTC,
			[]string{"05:30", "06:30"}, []string{"06:30"}},
		"cron 02:30": {func() gocron.JobDefinition { return cron("30 2 * * *") }, york,
			[]string{"07:30"}, nil},
		"daily 01:30": {func() gocron.JobDefinition { return daily(1, 30) }, york,
			[]string{"05:30"}, []string{"06:30"}},
		"daily 02:30": {func() gocron.JobDefinition { return daily(2, 30) }, york,
			[]string{"07:30"}, []string{"06:30"}},
		"cron each hour": {func() gocron.JobDefinition { return cron("30 * * * *") }, york,
			[]string{"04:30", "05:30", "07:30", "08:30"},
			[]string{"04:30", "05:30", "06:30", "07:30", "08:30"}},
		"cron each hour, UTC": {func() gocron.JobDefinition { return cron("30 * * * *") }, time.UTC,
			[]string{"04:30", "05:30", "06:30", "07:30", "08:30"},
			[]string{"04:30", "05:30", "06:30", "07:30", "08:30"}},
		"interval of an hour": {
			func() gocron.JobDefinition { return gocron.DurationJob(time.Hour) }, york,
			[]string{"04:00", "05:00", "06:00", "07:00", "08:00", "09:00"},
			[]string{"04:00", "05:00", "06:00", "07:00", "08:00", "09:00"}},
		"two instants of one text": {func() gocron.JobDefinition {
			return gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(
				autumn.Add(5*time.Hour), autumn.Add(6*time.Hour), spring.Add(6*time.Hour)))
		}, york, []string{"05:00", "06:00"}, []string{"06:00"}},
	} {
		for night, want := range map[time.Time][]string{autumn: c.autumn, spring: c.spring} {
			t.Run(name+night.Format(" 2006-01-02"), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(night.Add(3*time.Hour + 45*time.Minute)))
					f := newFleet(t, 3)
					var all []*replica
					for _, name := range names(2) {
						r := f.replica(name, 0, WithLocation(c.location))
						r.job("job", c.when(), 0)
						r.Start()
						all = append(all, r)
					}
					time.Sleep(5*time.Hour + 30*time.Minute)
					f.stop(all)
					f.check()
					var due []time.Time
					for _, text := range want {
						at, err := time.Parse("2006-01-02 15:04", night.Format("2006-01-02 ")+text)
						if err != nil {
							t.Fatal(err)
						}
						due = append(due, at)
					}
					f.record.All(t, "job", due)
				})
			})
		}
	}
}

// What to do with times that a night leaves out is an option of gocron's for all jobs. A first
// moment changes nothing of it, on whichever side of the night a replica is started.
func TestDaylightSavingPolicies(t *testing.T) {
	t.Parallel()
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	half := gocron.NewAtTimes(gocron.NewAtTime(2, 30, 0))
	day := time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		policy gocron.DaylightSavingsTimePolicy
		want   []time.Time
	}{
		"default": {gocron.DaylightSavingsTimeDefault,
			[]time.Time{day.Add(6*time.Hour + 30*time.Minute), day.Add(30*time.Hour + 30*time.Minute)}},
		"skip": {gocron.DaylightSavingsTimeSkip, []time.Time{day.Add(30*time.Hour + 30*time.Minute)}},
		"run after": {gocron.DaylightSavingsTimeRunAfterTransition,
			[]time.Time{day.Add(7*time.Hour + 30*time.Minute), day.Add(30*time.Hour + 30*time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(day.Add(-6 * time.Hour)))
				f := newFleet(t, 3)
				global := gocron.WithGlobalJobOptions(gocron.WithDaylightSavingsTimePolicy(c.policy))
				r := f.replica("a", 0, WithLocation(york), WithGocron(global))
				from := WithStartAt(day)
				r.job("plain", gocron.DailyJob(1, half), 0)
				r.job("daily", gocron.DailyJob(1, half), 0, from)
				r.job("weekly", gocron.WeeklyJob(1, gocron.NewWeekdays(time.Sunday, time.Monday), half), 0,
					from)
				r.job("monthly", gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(14, 15), half), 0, from)
				r.Start()
				time.Sleep(48 * time.Hour)
				r.stop()
				for _, job := range []string{"plain", "daily", "weekly", "monthly"} {
					f.record.All(t, job, c.want)
				}
			})
		})
	}
}
