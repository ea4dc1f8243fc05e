package main

import (
	"errors"
	"io"
	"math"
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
	v, err := run(t.Context(), moment, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if v.ours != "quorumlock" || v.theirs != "redsync fail-fast" {
		t.Errorf("judged %s beside %s, want quorumlock beside redsync fail-fast", v.ours, v.theirs)
	}
	if got := strings.Count(out.String(), "redsync fail-fast"); got < len(callers) {
		t.Errorf("%d lines of redsync fail-fast, want %d:\n%s", got, len(callers), out.String())
	}
}

// moment is a run of no length.
var moment = settings{rounds: 1, span: 20 * time.Millisecond, nodes: 3, inside: true}

func TestGuardIsMeasuredOnAndOff(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := moment
	s.rounds, s.guard, s.min, s.minGiven = 2, true, 0.01, true
	v, err := run(t.Context(), s, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if v.times <= 0 || v.least != 0.01 || !strings.Contains(out.String(), "guard on") ||
		!strings.Contains(out.String(), "guard off") {
		t.Errorf("got %+v, want a positive number, judged by -min, and lines of both:\n%s", v,
			out.String())
	}
}

func TestAProfileIsOfOursAlone(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := moment
	s.only, s.dir = 2, filepath.Join(t.TempDir(), "is not there", "yet")
	if _, err := run(t.Context(), s, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "redsync") || !strings.Contains(out.String(), "quorumlock") {
		t.Errorf("want a line of ours alone:\n%s", out.String())
	}
	for _, name := range []string{"cpu.pprof", "allocs.pprof"} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v, want a file with something in it", name, info, err)
		}
	}
}

func TestWhereNoProfileCanBeWrittenNothingIsMeasured(t *testing.T) {
	t.Parallel()
	s := moment
	s.dir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(s.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.span = time.Hour
	if _, err := run(t.Context(), s, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), s.dir) {
		t.Errorf("got %v, want what is wrong with %s", err, s.dir)
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
		"-min -2":     func(s *settings) { s.min = -2 },
		"-min NaN":    func(s *settings) { s.min = math.NaN() },
	} {
		s := settings{rounds: 1, span: time.Millisecond, nodes: 1}
		spoil(&s)
		if _, err := run(t.Context(), s, io.Discard, io.Discard); err == nil ||
			!strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("%s: got %v, want it to be named", flag, err)
		}
	}
}

func TestWhatCannotBeAskedForIsRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"64":                    `"64"`,
		"-guard -profile x":     "-guard and -profile",
		"-guard -callers 64":    "-guard and -callers",
		"-profile x -min 3":     "-min and -profile",
		"-callers 64 -min 3":    "-min and -callers",
		"-rounds 5 -no-such":    "-no-such",
		"-rounds five":          "five",
		"-rounds 5 -min 3 more": "more",
	} {
		var told strings.Builder
		if got := command(strings.Fields(args), io.Discard, &told); got != 2 {
			t.Errorf("%s: status %d, want 2", args, got)
		}
		if !strings.Contains(told.String(), want) || strings.Count(told.String(), "\n") != 1 {
			t.Errorf("%s: got %q, want one line that names %s", args, told.String(), want)
		}
	}
	var told strings.Builder
	if got := command([]string{"-h"}, io.Discard, &told); got != 0 ||
		!strings.Contains(told.String(), "-min") {
		t.Errorf("-h: status %d and %q, want 0 and the flags", got, told.String())
	}
}

func TestTheLastLineSaysWhatWasJudged(t *testing.T) {
	t.Parallel()
	samples := map[int][][]sample{judged: {{{perPair: 10}}, {{perPair: 9}}, {{perPair: 50}}}}
	libs := []library{{name: "quorumlock"}, {name: "bare scripts"}, {name: "redsync fail-fast"}}
	judgedTo := "judged with 64 callers: quorumlock is 5.00 times as fast as redsync fail-fast, "
	for want, s := range map[string]struct {
		settings
		real bool
	}{
		judgedTo + "6 times at least (-min): not reached": {settings{}, true},
		judgedTo + "5 times at least (-min): reached":     {settings{min: 5, minGiven: true}, false},
		judgedTo + "0.9 times at least (-min): reached":   {settings{guard: true}, true},
		"nothing is judged: nodes inside this process say little about time;" +
			" -min judges all the same": {settings{}, false},
		"nothing is judged: -min is 0":                                     {settings{minGiven: true}, true},
		"nothing is judged: -profile measures ours alone":                  {settings{dir: "x"}, true},
		"nothing is judged: -callers asks for one number of callers alone": {settings{only: 64}, true},
	} {
		v := s.judge(s.real, libs, samples)
		if v.String() != want || v.reached() == strings.Contains(want, "not reached") {
			t.Errorf("got %q, %v, want %q", v, v.reached(), want)
		}
	}
}

func TestOnNodesInsideNothingFailsAndItSaysSo(t *testing.T) {
	t.Parallel()
	var out, told strings.Builder
	args := []string{"-inside", "-rounds", "1", "-span", "20ms", "-nodes", "1"}
	if got := command(args, &out, &told); got != 0 {
		t.Errorf("status %d, want 0: %s", got, told.String())
	}
	if !strings.Contains(out.String(), "\nnothing is judged: nodes inside") {
		t.Errorf("it does not say that nothing is judged:\n%s", out.String())
	}
	if got := command(append(args, "-min", "1e9"), io.Discard, io.Discard); got != 1 {
		t.Errorf("with -min: status %d, want 1", got)
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
