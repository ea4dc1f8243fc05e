package ticksim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/replay"
)

// TestMain lets garbage lie for longer: a world is small, and short-lived are most things in it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

// seedsOf is which seeds to live through.
func seedsOf(t *testing.T) (first, seeds uint64) {
	t.Helper()
	many := uint64(20)
	if os.Getenv("QUORUMLOCK_TICK_SEED") != "" {
		many = 1
	}
	return replay.Number(t, "QUORUMLOCK_TICK_SEED", 1), replay.Number(t, "QUORUMLOCK_TICK_SEEDS", many)
}

// wholeDays reports whether somebody asked for more than an hour and a half of each night.
func wholeDays() bool { return os.Getenv("QUORUMLOCK_TICK_DAYS") != "" }

// replay is how a plan is lived through again.
func (p *plan) replay() string {
	if p.length == day {
		return fmt.Sprintf("QUORUMLOCK_TICK_SEED=%d QUORUMLOCK_TICK_DAYS=1", p.seed)
	}
	return fmt.Sprintf("QUORUMLOCK_TICK_SEED=%d", p.seed)
}

// TestTicks is the property run. By itself it lives through an hour and a half around the change
// in both nights, in 20 seeds, or in the seed QUORUMLOCK_TICK_SEED alone. QUORUMLOCK_TICK_SEEDS
// says in how many, and with QUORUMLOCK_TICK_DAYS=1 it lives through whole days: of a processor
// that takes 4 to 8 seconds each, and six times as long with the race detector.
func TestTicks(t *testing.T) {
	t.Parallel()
	first, seeds := seedsOf(t)
	var plans []*plan
	for i := range seeds {
		for _, noon := range nights {
			p := newPlan(first+i, noon)
			if !wholeDays() {
				p.shorten()
			}
			plans = append(plans, p)
		}
	}
	got := live(t, plans)
	if got.cut() < 0.05 {
		t.Errorf("%.1f %% of the claims were cut between win and commit, want 5 %%", 100*got.cut())
	}
	if got.lost() >= 0.01 {
		t.Errorf("%.2f %% of the ticks did not run, want less than 1 %%", 100*got.lost())
	}
}

// TestTicksWithoutFaults: then none is missed, however wrong the replicas' clocks are.
func TestTicksWithoutFaults(t *testing.T) {
	t.Parallel()
	var plans []*plan
	for i, noon := range nights {
		p := newPlan(uint64(i+1), noon)
		p.calm = true
		if !wholeDays() {
			p.shorten()
		}
		plans = append(plans, p)
	}
	if got := live(t, plans); got.missed.Load() != 0 {
		t.Errorf("%d ticks did not run, want none", got.missed.Load())
	}
}

// live lives through nights, as many at a time as there are processors, and stops at the first
// that fails.
func live(t *testing.T, plans []*plan) *counts {
	t.Helper()
	var got counts
	var next atomic.Int64
	var failed atomic.Bool
	began := time.Now()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(plans) {
					return
				}
				if lines := oneNight(t, plans[i], &got); lines != nil {
					failed.Store(true)
					t.Errorf("failed; replay with %s: %+v\n%s", plans[i].replay(), *plans[i],
						strings.Join(lines, "\n"))
				}
				if done := i + 1; done%50 == 0 {
					t.Logf("%d of %d nights, %v", done, len(plans), time.Since(began).Round(time.Second))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%v\n%v", time.Since(began).Round(time.Millisecond), &got)
	return &got
}

// oneNight lives through a night in a bubble of its own. A goroutine that is left blocked is a
// panic of the bubble.
func oneNight(t *testing.T, p *plan, got *counts) (lines []string) {
	defer func() {
		if p := recover(); p != nil {
			lines = append(lines, fmt.Sprintf("panic: %v", p))
		}
	}()
	synctest.Test(t, func(*testing.T) { lines = p.run(got) })
	got.nights.Add(1)
	return lines
}
