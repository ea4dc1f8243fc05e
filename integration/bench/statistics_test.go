package main

import (
	"slices"
	"testing"
	"time"
)

func TestMedianAndSpread(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []float64
		want   spread[float64]
	}{
		{nil, spread[float64]{}},
		{[]float64{7}, spread[float64]{7, 7, 7}},
		{[]float64{5, 1, 3}, spread[float64]{3, 1, 5}},
		{[]float64{4, 1, 2, 5}, spread[float64]{3, 1, 5}},
	} {
		if got := spreadOf(tc.values); got != tc.want {
			t.Errorf("%v: got %v, want %v", tc.values, got, tc.want)
		}
	}
}

func TestQuantileIsOneOfTheValues(t *testing.T) {
	t.Parallel()
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, 100-i)
	}
	for _, tc := range []struct {
		values []int
		part   float64
		want   int
	}{
		{nil, 0.5, 0}, {[]int{9}, 0.99, 9}, {hundred, 0, 1}, {hundred, 0.5, 50}, {hundred, 0.99, 99},
		{hundred, 1, 100}, {[]int{3, 1, 2}, 0.5, 2},
	} {
		if got := quantile(tc.values, tc.part); got != tc.want {
			t.Errorf("%v of %d values: got %d, want %d", tc.part, len(tc.values), got, tc.want)
		}
	}
}

func TestRatioIsOfRoundsAndNotOfMedians(t *testing.T) {
	t.Parallel()
	ours, theirs := []time.Duration{10, 100, 1}, []time.Duration{20, 200, 9}
	if got, ok := ratio(ours, theirs); got != 2 || !ok {
		t.Errorf("got %v, %v, want 2: twice as long in two of three rounds", got, ok)
	}
	if got, ok := ratio([]time.Duration{0, 2}, []time.Duration{5, 6}); got != 3 || !ok {
		t.Errorf("got %v, %v, want 3: a round without a value is left out", got, ok)
	}
	if _, ok := ratio([]time.Duration{0}, []time.Duration{5}); ok {
		t.Error("a ratio to nothing is a ratio")
	}
}

func TestBestIsRoundByRound(t *testing.T) {
	t.Parallel()
	got := best([]time.Duration{5, 2, 0, 4}, []time.Duration{3, 9, 7, 0})
	if want := []time.Duration{3, 2, 7, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := best[time.Duration](); len(got) != 0 {
		t.Errorf("the best of nobody is %v", got)
	}
}
