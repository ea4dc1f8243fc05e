package ticksim

import (
	"math/rand/v2"
	"time"
	_ "time/tzdata" // New York, on machines without zones

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/schedule"
)

const (
	replicas   = 7
	mostSkew   = 5 * time.Second // of a replica's clock, both ways
	day        = 24 * time.Hour
	cutChance  = 0.07 // of claims, between win and commit
	loseChance = 0.02 // of commits, on a majority of the nodes, with nothing else wrong
)

// nights are the noons in New York before the clocks change.
var nights = []time.Time{
	time.Date(2026, 10, 31, 16, 0, 0, 0, time.UTC), // back, at 06:00 UTC
	time.Date(2027, 3, 13, 17, 0, 0, 0, time.UTC),  // forward, at 07:00 UTC
}

// A plan is what a seed stands for, in one of the nights.
type plan struct {
	seed     uint64
	noon     time.Time // when it begins
	length   time.Duration
	nodes    int
	interval time.Duration
	way      time.Duration // a message takes up to this long
	zoned    bool          // the scheduler is in New York; else the job alone says so
	calm     bool          // nothing fails; only the clocks are off
}

// streams of rand.PCG, so that the parts of a plan do not depend on each other.
const (
	planStream = iota + 1
	weatherStream
	wayStream
	slotStream // and above
)

func (p *plan) rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, stream)) }

func newPlan(seed uint64, noon time.Time) *plan {
	p := &plan{seed: seed, noon: noon, length: day}
	r := p.rand(planStream)
	p.nodes = pick(r, 3, 5)
	p.interval = pick(r, 90*time.Second, 5*time.Minute)
	p.way = pick[time.Duration](r, 1, 5, 20) * time.Millisecond
	p.zoned = r.IntN(2) == 0
	return p
}

// shorten leaves an hour and a half around the change, from 01:15 in New York on: in autumn both
// the instants of 01:30 are in it, in spring the one.
func (p *plan) shorten() {
	p.noon, p.length = p.noon.Add(13*time.Hour+15*time.Minute), 90*time.Minute
}

// pick chooses one of what it is given.
func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// between is a random span, odd in its nanoseconds, so that few things happen in one instant.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// A jobPlan is one of the jobs.
type jobPlan struct {
	name string
	when func() gocron.JobDefinition
	due  func(from, to time.Time) []time.Time
	runs []time.Duration // how long its runs take, one of these
}

// newYork is where the clocks change.
var newYork = func() *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return zone
}()

func (p *plan) jobs() []jobPlan {
	every := func(d time.Duration) func(from, to time.Time) []time.Time {
		return func(from, to time.Time) []time.Time { return ticktest.Every(d, from, to) }
	}
	daily := jobPlan{name: "daily", due: p.halfPastOne, runs: []time.Duration{10 * time.Minute}}
	if p.zoned {
		daily.when = func() gocron.JobDefinition {
			return gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(1, 30, 0)))
		}
	} else {
		daily.when = func() gocron.JobDefinition {
			return gocron.CronJob("CRON_TZ=America/New_York 30 1 * * *", false)
		}
	}
	// A run of 55 s that dies, or begins late, is in the way of the next tick.
	return []jobPlan{
		{"minute", func() gocron.JobDefinition { return gocron.CronJob("* * * * *", false) },
			every(time.Minute),
			[]time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second, 55 * time.Second}},
		{"interval", func() gocron.JobDefinition { return gocron.DurationJob(p.interval) },
			every(p.interval), []time.Duration{time.Second, 10 * time.Second, 40 * time.Second}},
		daily,
	}
}

// halfPastOne are the instants of 01:30 in New York. There are two of them in the night when the
// clocks go back; gocron leaves the second out if it is in that zone itself.
func (p *plan) halfPastOne(from, to time.Time) []time.Time {
	var all []time.Time
	for _, at := range ticktest.Every(30*time.Minute, from, to) {
		there := at.In(newYork)
		if there.Hour() != 1 || there.Minute() != 30 {
			continue
		}
		if again := there.Add(-time.Hour); p.zoned && again.Hour() == 1 {
			continue
		}
		all = append(all, at)
	}
	return all
}

func (p *plan) options() []schedule.Option {
	if p.zoned {
		return []schedule.Option{schedule.WithLocation(newYork)}
	}
	return nil
}
