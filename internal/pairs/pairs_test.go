package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestEveryCellIsMeasured does not judge any time: it is the command that is tested here.
func TestEveryCellIsMeasured(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ratio, err := run(t.Context(), settings{rounds: 1, span: 20 * time.Millisecond, nodes: 3}, &out,
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if ratio <= 0 {
		t.Errorf("the ratio is %v, want a positive number", ratio)
	}
	if got := strings.Count(out.String(), "redsync fail-fast"); got < len(callers) {
		t.Errorf("%d lines of redsync fail-fast, want %d:\n%s", got, len(callers), out.String())
	}
}

func TestGuardIsMeasuredOnAndOff(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := settings{rounds: 2, span: 20 * time.Millisecond, nodes: 3, guard: true}
	ratio, err := run(t.Context(), s, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if ratio <= 0 || !strings.Contains(out.String(), "guard on") ||
		!strings.Contains(out.String(), "guard off") {
		t.Errorf("ratio %v, want a positive number, and lines of both:\n%s", ratio, out.String())
	}
}

func TestSummaryIsOfAllRounds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got := summarize([]sample{
		{perPair: 5, allocs: 1}, {perPair: 1, allocs: 3, failed: 2, err: broken}, {perPair: 3, allocs: 8},
	})
	want := summary{median: 3, least: 1, most: 5, allocs: 3, failed: 2, err: broken}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if m := median([]float64{1, 2, 4, 5}); m != 3 {
		t.Errorf("the median of an even number is %v, want 3", m)
	}
}

func TestRatioIsOfRoundsAndNotOfMedians(t *testing.T) {
	t.Parallel()
	ours := []sample{{perPair: 10}, {perPair: 100}, {perPair: 1}}
	theirs := []sample{{perPair: 20}, {perPair: 200}, {perPair: 9}}
	if got := ratioOf(theirs, ours); got != 2 {
		t.Errorf("got %v, want 2: twice as long in two of three rounds", got)
	}
}
