package sim

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/replay"
)

// TestSchedules is the property run. QUORUMLOCK_SCHEDULES says how many schedules, QUORUMLOCK_SEED
// the first of their seeds, and QUORUMLOCK_REPLAY replays one seed a hundred times.
func TestSchedules(t *testing.T) {
	if seed := replay.Number(t, "QUORUMLOCK_REPLAY", 0); seed != 0 {
		many(t, 100, func(uint64) uint64 { return seed })
		return
	}
	n := replay.Number(t, "QUORUMLOCK_SCHEDULES", 200)
	if testing.Short() {
		n = min(n, 100)
	}
	first := replay.Number(t, "QUORUMLOCK_SEED", 1)
	many(t, n, func(i uint64) uint64 { return first + i })
}

// many runs n schedules, several at a time, because each of them often waits for its own
// goroutines, and stops at the first that fails.
func many(t *testing.T, n uint64, seed func(i uint64) uint64) {
	t.Helper()
	manyPlans(t, n, func(i uint64) *Plan { return NewPlan(seed(i)) })
}

func manyPlans(t *testing.T, n uint64, plan func(i uint64) *Plan) {
	t.Helper()
	var counts Counts
	var next atomic.Uint64
	var failed atomic.Bool
	began := time.Now()
	var workers sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !failed.Load() {
				i := next.Add(1) - 1
				if i >= n {
					return
				}
				if lines := onePlan(t, plan(i), &counts); lines != nil {
					failed.Store(true)
					t.Errorf("schedule failed; replay with QUORUMLOCK_REPLAY=%d\n%s",
						plan(i).Seed, strings.Join(lines, "\n"))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%v: %v", time.Since(began).Round(time.Millisecond), &counts)
}

// onePlan runs a schedule in a bubble of its own. A goroutine that is left blocked is a panic of
// the bubble, and named with the seed.
func onePlan(t *testing.T, plan *Plan, counts *Counts) (lines []string) {
	defer func() {
		if p := recover(); p != nil {
			lines = append(lines, fmt.Sprintf("panic: %v", p))
		}
	}()
	synctest.Test(t, func(*testing.T) { lines = plan.Run(counts) })
	return lines
}
