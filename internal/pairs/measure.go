package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A sample is what one round of one library with one number of callers came to.
type sample struct {
	perPair time.Duration // of the clock, over all callers together
	allocs  float64       // per pair, of the whole process
	bytes   float64
	failed  int64
	err     error // the first failure
}

// measure lets callers lock and unlock, each its own names, for about span, or until ctx ends: then
// what it returns says nothing.
func measure(ctx context.Context, lib library, callers int, span time.Duration) sample {
	if lib.bare != nil {
		began := time.Now()
		pairs, err := lib.bare.Run(ctx, callers, span)
		return sample{perPair: time.Duration(float64(time.Since(began)) / max(pairs, 1)), err: err}
	}
	var pairs, failed atomic.Int64
	var first sync.Once
	var s sample
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			// As many names as a service has, not a new one for each pair: registers stay. Each
			// library has its own: with fail-fast redsync leaves keys to end by themselves, and who
			// came next would find them.
			name := fmt.Sprintf("pair/%s/%d/%d", lib.name, callers, caller)
			for time.Since(began) < span && ctx.Err() == nil {
				if err := lib.pair(ctx, name); err != nil {
					failed.Add(1)
					first.Do(func() { s.err = err })
					continue
				}
				pairs.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	n := max(float64(pairs.Load()), 1)
	s.perPair = time.Duration(float64(took) / n)
	s.allocs = float64(after.Mallocs-before.Mallocs) / n
	s.bytes = float64(after.TotalAlloc-before.TotalAlloc) / n
	s.failed = failed.Load()
	return s
}

// A summary is what the rounds of one library with one number of callers came to together.
type summary struct {
	median, least, most time.Duration
	allocs, bytes       float64 // medians
	failed              int64
	err                 error
}

func summarize(samples []sample) summary {
	var s summary
	var times []time.Duration
	var allocs, bytes []float64
	for _, one := range samples {
		times = append(times, one.perPair)
		allocs = append(allocs, one.allocs)
		bytes = append(bytes, one.bytes)
		s.failed += one.failed
		if s.err == nil {
			s.err = one.err
		}
	}
	s.median, s.allocs, s.bytes = median(times), median(allocs), median(bytes)
	s.least, s.most = slices.Min(times), slices.Max(times)
	return s
}

// ratioOf is how many times as long theirs took as ours: the median over the rounds, in each of
// which both were measured one after the other, so that what else the machine did meets both.
func ratioOf(theirs, ours []sample) float64 {
	ratios := make([]float64, len(ours))
	for round := range ours {
		ratios[round] = float64(theirs[round].perPair) / float64(ours[round].perPair)
	}
	return median(ratios)
}

// median of an even number of values is the mean of the two in the middle.
func median[T time.Duration | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
