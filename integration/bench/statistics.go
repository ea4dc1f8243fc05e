package main

import (
	"cmp"
	"slices"
)

// number is what is measured: times, and counts per operation.
type number interface{ ~int64 | ~float64 }

// median of an even number of values is the mean of the two in the middle; of none, zero.
func median[T number](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// A spread is what the rounds came to together.
type spread[T number] struct{ median, least, most T }

func spreadOf[T number](values []T) spread[T] {
	if len(values) == 0 {
		return spread[T]{}
	}
	return spread[T]{median: median(values), least: slices.Min(values), most: slices.Max(values)}
}

// quantile is the least of the values that so large a part of them does not exceed (nearest rank);
// of none, zero.
func quantile[T cmp.Ordered](values []T, part float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(part * float64(len(sorted)))
	if float64(rank) == part*float64(len(sorted)) {
		rank--
	}
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// ratio is how many times the first the second is: the median over the rounds, in each of which
// both were measured one after the other, so that what else the machine did meets both. A round
// in which the first has no value is left out; ok is false if no round is left.
func ratio[T number](of, to []T) (times float64, ok bool) {
	var all []float64
	for i := range min(len(of), len(to)) {
		if of[i] > 0 && to[i] > 0 {
			all = append(all, float64(to[i])/float64(of[i]))
		}
	}
	return median(all), len(all) > 0
}

// best is, round by round, the least positive value of several series: the fastest of its rounds.
func best[T number](series ...[]T) []T {
	var out []T
	for _, values := range series {
		for i, v := range values {
			if i == len(out) {
				out = append(out, v)
			} else if v > 0 && (v < out[i] || out[i] == 0) {
				out[i] = v
			}
		}
	}
	return out
}

// column takes one number out of each sample.
func column[S any, T number](samples []S, of func(S) T) []T {
	out := make([]T, len(samples))
	for i, s := range samples {
		out[i] = of(s)
	}
	return out
}
