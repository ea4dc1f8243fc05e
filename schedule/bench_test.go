//go:build unix

package schedule

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

// benchTicks are the ticks of one round of a benchmark.
const benchTicks = 10_000

// BenchmarkRefusedTicks is a standby of an Elector through both of gocron's hooks, on a clock that
// the benchmark moves. One op is 10,000 ticks, all refused; first-ns and last-ns are the CPU time per
// tick in the first and in the last fifth of them, B/tick is what the heap has grown by, and
// entries is the length of gocron's own list of instants.
//
//	go test ./schedule -run '^$' -bench RefusedTicks -benchtime 1x
func BenchmarkRefusedTicks(b *testing.B) {
	for _, hook := range []string{"elector", "locker"} {
		b.Run("hook="+hook, func(b *testing.B) {
			e := benchStandby(b)
			option := gocron.WithDistributedElector(e)
			if hook == "locker" {
				option = gocron.WithDistributedLocker(e.AsLocker())
			}
			var first, last time.Duration
			var grown, entries int
			rounds := 0
			for b.Loop() {
				f, l, g, n := refuse(b, option)
				first, last, grown, entries = first+f, last+l, grown+g, n
				rounds++
			}
			per := float64(rounds * benchTicks / 5)
			b.ReportMetric(float64(first)/per, "first-ns/tick")
			b.ReportMetric(float64(last)/per, "last-ns/tick")
			b.ReportMetric(float64(grown)/float64(rounds*benchTicks), "B/tick")
			b.ReportMetric(float64(entries), "entries")
		})
	}
}

// benchStandby is an elector that does not lead.
func benchStandby(b *testing.B) *Elector {
	b.Helper()
	nodes := redlocktest.Start(b, 3)
	var electors [2]*Elector
	for i, name := range []string{"leader", "standby"} {
		c, err := nodes.Client(redlock.Config{Identity: name})
		if err != nil {
			b.Fatal(err)
		}
		if electors[i], err = NewElector(c, "bench"); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = electors[i].Close() })
		for i == 0 && electors[0].IsLeader(b.Context()) != nil {
			runtime.Gosched()
		}
	}
	return electors[1]
}

// refuse lets a scheduler have its ticks, and takes its measure.
func refuse(b *testing.B, option gocron.SchedulerOption) (
	first, last time.Duration, grown, entries int,
) {
	b.Helper()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s, err := gocron.NewScheduler(option, gocron.WithClock(clock), gocron.WithLocation(time.UTC))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Shutdown() }()
	j, err := s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() {
		b.Error("the standby ran a tick")
	}))
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	before := heap()
	for fifth := range 5 {
		began := cpuTime(b)
		for range benchTicks / 5 {
			if err := clock.BlockUntilContext(context.Background(), 1); err != nil {
				b.Fatal(err)
			}
			clock.Advance(time.Second)
		}
		last = cpuTime(b) - began
		if fifth == 0 {
			first = last
		}
	}
	_ = clock.BlockUntilContext(context.Background(), 1)
	grown = heap() - before
	next, err := j.NextRuns(2 * benchTicks)
	if err != nil {
		b.Fatal(err)
	}
	for _, at := range next {
		if !at.After(clock.Now()) {
			entries++
		}
	}
	return first, last, grown, entries + 1 // and the one that is armed
}

// heap is how many bytes are in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
