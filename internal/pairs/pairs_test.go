package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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

func TestAProfileIsOfOursAlone(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	dir := t.TempDir()
	s := settings{rounds: 1, span: 20 * time.Millisecond, nodes: 3, only: 2, dir: dir}
	if _, err := run(t.Context(), s, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "redsync") || !strings.Contains(out.String(), "quorumlock") {
		t.Errorf("want a line of ours alone:\n%s", out.String())
	}
	for _, name := range []string{"cpu.pprof", "allocs.pprof"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v, want a file with something in it", name, info, err)
		}
	}
	s.dir = filepath.Join(dir, "missing")
	if _, err := run(t.Context(), s, io.Discard, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a directory that is not there: got %v, want what is wrong", err)
	}
}

func TestWrongNumbersAreNamed(t *testing.T) {
	t.Parallel()
	for flag, spoil := range map[string]func(*settings){
		"-rounds 0":   func(s *settings) { s.rounds = 0 },
		"-span 0s":    func(s *settings) { s.span = 0 },
		"-nodes 0":    func(s *settings) { s.nodes = 0 },
		"-pool -3":    func(s *settings) { s.pool = -3 },
		"-callers -1": func(s *settings) { s.only = -1 },
	} {
		s := settings{rounds: 1, span: time.Millisecond, nodes: 1}
		spoil(&s)
		if _, err := run(t.Context(), s, io.Discard, io.Discard); err == nil ||
			!strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("%s: got %v, want it to be named", flag, err)
		}
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
