package sim

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/replay"
)

// forgetful is the plan of a seed, with amnesia.
func forgetful(seed uint64) *Plan {
	p := NewPlan(seed)
	p.Guard, p.Amnesia = true, true
	p.Nodes = max(p.Nodes, 3)
	p.Storms = max(p.Storms, 20)
	return p
}

// TestSchedulesWithAmnesia: whatever nodes forget, never two holders, and tokens grow.
func TestSchedulesWithAmnesia(t *testing.T) {
	if seed := replay.Number(t, "QUORUMLOCK_REPLAY", 0); seed != 0 {
		manyPlans(t, 100, func(uint64) *Plan { return forgetful(seed) })
		return
	}
	n := replay.Number(t, "QUORUMLOCK_SCHEDULES", 200)
	if testing.Short() {
		n = min(n, 50)
	}
	first := replay.Number(t, "QUORUMLOCK_SEED", 1)
	manyPlans(t, n, func(i uint64) *Plan { return forgetful(first + i) })
}

// TestAmnesiaBites: without the guard the same schedules find two holders.
func TestAmnesiaBites(t *testing.T) {
	const most = 60
	var counts Counts
	for seed := uint64(1); seed <= most; seed++ {
		plan := forgetful(seed)
		plan.Guard, plan.Blind = false, true
		for _, line := range onePlan(t, plan, &counts) {
			if strings.Contains(line, "is held by") {
				t.Logf("seed %d: %s", seed, line)
				return
			}
		}
	}
	t.Errorf("no two holders in %d schedules without a guard: %v", most, &counts)
}
