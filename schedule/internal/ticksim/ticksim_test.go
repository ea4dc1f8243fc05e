package ticksim

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// number reads an environment variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestTicks is the property run. QUORUMLOCK_TICK_SEEDS says how many seeds, each for both nights,
// and QUORUMLOCK_TICK_SEED the first of them. Unless told otherwise it lives through the six
// hours around the change, in one seed; with seeds given, through whole days.
func TestTicks(t *testing.T) {
	t.Parallel()
	first := number(t, "QUORUMLOCK_TICK_SEED", 1)
	var plans []*plan
	seeds := number(t, "QUORUMLOCK_TICK_SEEDS", 0)
	for i := range max(seeds, 1) {
		for _, noon := range nights {
			p := newPlan(first+i, noon)
			if seeds == 0 {
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
		if number(t, "QUORUMLOCK_TICK_SEEDS", 0) == 0 {
			p.shorten()
		}
		plans = append(plans, p)
	}
	if got := live(t, plans); got.missed.Load() != 0 {
		t.Errorf("%d ticks did not run, want none", got.missed.Load())
	}
}

// live lives through nights, several at a time, because each of them often waits for its own
// goroutines, and stops at the first that fails.
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
					t.Errorf("failed; replay with QUORUMLOCK_TICK_SEED=%d: %+v\n%s", plans[i].seed,
						*plans[i], strings.Join(lines, "\n"))
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
