package main

import (
	"testing"
)

func TestRunsAreCountedByJobAndReplica(t *testing.T) {
	t.Parallel()
	runs := newRunTally(3, 3)
	runs.add(0, "a", 1)
	runs.add(0, "b", 5)
	runs.add(1, "a", 3)
	want := tickSample{took: 5, p50: 3, least: 0, most: 2, missing: 1, repeated: 1}
	if got := runs.sample(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	select {
	case <-runs.complete:
		t.Error("complete without job c")
	default:
	}
	runs.add(2, "c", 4)
	runs.add(2, "c", 4)
	select {
	case <-runs.complete:
	default:
		t.Error("not complete, though all have run")
	}
}

func TestTheWinnersCommandsAreToldFromTheLosers(t *testing.T) {
	t.Parallel()
	runs := newRunTally(3, 1)
	runs.add(1, "a", 0)
	replicas := make([]*tickReplica, 3)
	for i, n := range []int64{4, 30, 8} {
		replicas[i] = &tickReplica{}
		replicas[i].asked.commands.Store(n)
	}
	if winner, loser := runs.shares(replicas); winner != 30 || loser != 6 {
		t.Errorf("the winner %v, a loser %v; want 30 and 6", winner, loser)
	}
	runs.add(2, "a", 0)
	if winner, loser := runs.shares(replicas); winner != 19 || loser != 4 {
		t.Errorf("run twice: a winner %v, the loser %v; want 19 and 4", winner, loser)
	}
}
