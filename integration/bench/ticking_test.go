package main

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/schedule"
)

func TestRunsAreCountedByJobAndReplica(t *testing.T) {
	t.Parallel()
	runs := newRunTally(3, 3)
	ran := func(replica int, job string, late time.Duration) {
		runs.add(replica, schedule.TickEvent{Tick: schedule.Tick{Job: job}, Late: late})
	}
	ran(0, "a", 1)
	ran(0, "b", 5)
	ran(1, "a", 3)
	want := tickSample{took: 5, p50: 3, least: 0, most: 2, missing: 1, repeated: 1}
	if got := runs.sample(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	select {
	case <-runs.complete:
		t.Error("complete without job c")
	default:
	}
	ran(2, "c", 4)
	ran(2, "c", 4)
	select {
	case <-runs.complete:
	default:
		t.Error("not complete, though all have run")
	}
}

func TestTheWinnersCommandsAreToldFromTheLosers(t *testing.T) {
	t.Parallel()
	runs := newRunTally(3, 1)
	runs.add(1, schedule.TickEvent{Tick: schedule.Tick{Job: "a"}})
	replicas := make([]*tickReplica, 3)
	for i, n := range []int64{4, 30, 8} {
		replicas[i] = &tickReplica{}
		replicas[i].asked.commands.Store(n)
	}
	if winner, loser := runs.shares(replicas); winner != 30 || loser != 6 {
		t.Errorf("the winner %v, a loser %v; want 30 and 6", winner, loser)
	}
}
