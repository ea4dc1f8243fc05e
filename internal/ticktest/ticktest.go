// Package ticktest checks what must be true of ticks, from what the runs themselves recorded. It is
// for tests only, and knows no scheduler.
package ticktest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// TB is the part of testing.TB that is used here.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// A Run is one run of a job, as it recorded itself.
type Run struct {
	Job     string
	At      time.Time // the tick's instant
	Token   uint64    // fencing token; 0: not known
	Replica string
	Manual  bool
	Began   time.Time
	Ended   time.Time // zero: it never did
}

func (r Run) String() string {
	return fmt.Sprintf("%s at %s by %s (token %d, began %s)", r.Job,
		r.At.UTC().Format(time.RFC3339Nano), r.Replica, r.Token, r.Began.UTC().Format(time.RFC3339Nano))
}

// A Record is what all replicas ran. Its methods may be called concurrently.
type Record struct {
	mu   sync.Mutex // guards runs
	runs []*Run
}

// Begin records that a run began; the function it returns, that it ended.
func (r *Record) Begin(run Run) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run.Began = time.Now()
	r.runs = append(r.runs, &run)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		run.Ended = time.Now()
	}
}

// Runs are the runs of a job, ""  for all jobs, in the order in which they began.
func (r *Record) Runs(job string) []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var runs []Run
	for _, run := range r.runs {
		if job == "" || run.Job == job {
			runs = append(runs, *run)
		}
	}
	return runs
}

// ticks are the runs by job and instant, without those on request.
func (r *Record) ticks() map[string]map[int64][]Run {
	all := make(map[string]map[int64][]Run)
	for _, run := range r.Runs("") {
		if run.Manual {
			continue
		}
		if all[run.Job] == nil {
			all[run.Job] = make(map[int64][]Run)
		}
		at := run.At.UnixMilli()
		all[run.Job][at] = append(all[run.Job][at], run)
	}
	return all
}

// Once wants at most one run per job and instant.
func (r *Record) Once(t TB) {
	t.Helper()
	for _, ticks := range r.ticks() {
		for _, at := range slices.Sorted(maps.Keys(ticks)) {
			if runs := ticks[at]; len(runs) > 1 {
				t.Errorf("a tick ran %d times: %v", len(runs), runs)
			}
		}
	}
}

// Missed are those of the instants at which the job did not run.
func (r *Record) Missed(job string, due []time.Time) []time.Time {
	ticks := r.ticks()[job]
	var missed []time.Time
	for _, at := range due {
		if len(ticks[at.UnixMilli()]) == 0 {
			missed = append(missed, at)
		}
	}
	return missed
}

// All wants a run at each of the instants, and none at another.
func (r *Record) All(t TB, job string, due []time.Time) {
	t.Helper()
	if missed := r.Missed(job, due); len(missed) > 0 {
		t.Errorf("%s: %d of %d due ticks did not run: %v", job, len(missed), len(due), missed)
	}
	known := make(map[int64]bool)
	for _, at := range due {
		known[at.UnixMilli()] = true
	}
	for at, runs := range r.ticks()[job] {
		if !known[at] {
			t.Errorf("%s: ran at an instant that was not due: %v", job, runs)
		}
	}
}

// Ordered wants the runs of each job to begin in the order of their instants, and their fencing
// tokens to grow.
func (r *Record) Ordered(t TB) {
	t.Helper()
	last := make(map[string]Run)
	runs := r.Runs("")
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Began.Compare(b.Began) })
	for _, run := range runs {
		before, ok := last[run.Job]
		last[run.Job] = run
		switch {
		case !ok:
		case !run.Manual && !before.Manual && run.At.Before(before.At):
			t.Errorf("a run began after one of a later instant: %v, after %v", run, before)
		case run.Token != 0 && cmp.Compare(run.Token, before.Token) <= 0:
			t.Errorf("a fencing token did not grow: %v, after %v", run, before)
		}
	}
}

// Apart wants no two runs of a job at once.
func (r *Record) Apart(t TB) {
	t.Helper()
	open := make(map[string]Run)
	runs := r.Runs("")
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Began.Compare(b.Began) })
	for _, run := range runs {
		if before, ok := open[run.Job]; ok && (before.Ended.IsZero() || before.Ended.After(run.Began)) {
			t.Errorf("two runs at once: %v, and %v", before, run)
		}
		open[run.Job] = run
	}
}

// Every are the multiples of an interval since the epoch, after from and not after to.
func Every(interval time.Duration, from, to time.Time) []time.Time {
	var all []time.Time
	first := from.UnixNano() - from.UnixNano()%int64(interval)
	for at := time.Unix(0, first).Add(interval); !at.After(to); at = at.Add(interval) {
		all = append(all, at.UTC())
	}
	return all
}
