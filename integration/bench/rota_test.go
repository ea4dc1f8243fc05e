package main

import (
	"slices"
	"testing"
	"time"
)

func TestClientsAndTakersAreDealtInTurn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		takers, clients, processes int
		want                       []share
	}{
		{3, 3, 4, []share{{1, 1}, {1, 1}, {1, 1}, {0, 0}}},
		{17, 17, 4, []share{{5, 5}, {4, 4}, {4, 4}, {4, 4}}},
		{17, 1, 4, []share{{1, 17}, {0, 0}, {0, 0}, {0, 0}}},
		{257, 16, 4, []share{{4, 65}, {4, 64}, {4, 64}, {4, 64}}},
		{2, 3, 2, []share{{2, 1}, {1, 1}}},
		{0, 1, 1, []share{{1, 0}}},
	} {
		if got := deal(tc.takers, tc.clients, tc.processes); !slices.Equal(got, tc.want) {
			t.Errorf("%d takers, %d clients, %d processes: got %v, want %v", tc.takers, tc.clients,
				tc.processes, got, tc.want)
		}
	}
}

func TestWhoIsFollowedMayAskAgain(t *testing.T) {
	t.Parallel()
	at := func(process int, got int64) turn { return turn{Process: process, Got: got} }
	for _, tc := range []struct {
		claim string
		told  []turn
		want  []int // the process that may ask again; -1: none
	}{
		{"the first holder waits for a second", []turn{at(0, 10)}, []int{-1}},
		{"each next one ends the turn before", []turn{at(0, 10), at(1, 20), at(2, 30), at(0, 40)},
			[]int{-1, 0, 1, 2}},
		{"one process alone is no exception", []turn{at(0, 10), at(0, 20)}, []int{-1, 0}},
		{"a hold that is told late was followed already", []turn{at(0, 10), at(2, 30), at(1, 20),
			at(0, 40)}, []int{-1, 0, 1, 2}},
		{"the first hold is told last", []turn{at(1, 20), at(0, 10), at(2, 30)}, []int{-1, 0, 1}},
	} {
		t.Run(tc.claim, func(t *testing.T) {
			t.Parallel()
			var r rota
			var got []int
			for _, h := range tc.told {
				followed, ok := r.held(h)
				if !ok {
					followed.Process = -1
				}
				got = append(got, followed.Process)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestGapsAreBetweenHoldsOfAnyProcess(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		claim    string
		holds    []turn
		until    int64
		want     []time.Duration
		together int
	}{
		{"no hold, no gap", nil, 100, nil, 0},
		{"nobody waited for the first", []turn{{0, 0, 10, 12}}, 100, nil, 0},
		{"holds of two processes in one order",
			[]turn{{0, 0, 10, 12}, {0, 0, 40, 41}, {1, 0, 20, 22}}, 100, []time.Duration{8, 18}, 0},
		{"what comes after the end does not count",
			[]turn{{0, 0, 10, 12}, {1, 0, 20, 22}, {0, 0, 101, 102}}, 100, []time.Duration{8}, 0},
		{"two at once are counted, and are no gap",
			[]turn{{0, 0, 10, 30}, {1, 0, 20, 40}, {0, 0, 45, 46}}, 100, []time.Duration{5}, 1},
		{"a hand-over in no time is a gap", []turn{{0, 0, 10, 12}, {1, 0, 12, 13}}, 100,
			[]time.Duration{0}, 0},
	} {
		t.Run(tc.claim, func(t *testing.T) {
			t.Parallel()
			got, together := gapsOf(tc.holds, tc.until)
			if !slices.Equal(got, tc.want) || together != tc.together {
				t.Errorf("got %v and %d together, want %v and %d", got, together, tc.want, tc.together)
			}
		})
	}
}
