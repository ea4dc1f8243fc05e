// Package clock reads both clocks of this machine at once.
//
// Go's monotonic clock stands still while a machine is suspended, and the wall clock can be
// stepped. Whoever has to know that a span is over takes the larger of the two: the worst that a
// wrong clock can then do is to end a lock too early.
//
// The package is a seam for tests: inside a synctest bubble both clocks move together, so a
// suspended machine or a stepped wall clock is simulated by a Clock of the test's own.
package clock

import "time"

// A Reading is what both clocks showed at one moment.
type Reading struct {
	Mono time.Duration // since a moment that is fixed for the process
	Wall time.Duration // since the Unix epoch
}

// A Clock reads both clocks.
type Clock interface{ Now() Reading }

// Since tells how much time has passed from earlier to r: the larger of what the clocks say.
func (r Reading) Since(earlier Reading) time.Duration {
	return max(r.Mono-earlier.Mono, r.Wall-earlier.Wall)
}

// Add returns the reading d later on both clocks.
func (r Reading) Add(d time.Duration) Reading {
	return Reading{Mono: r.Mono + d, Wall: r.Wall + d}
}

// Until tells how much time is left at r until the moment end: the smaller of what the clocks say.
func (r Reading) Until(end Reading) time.Duration {
	return min(end.Mono-r.Mono, end.Wall-r.Wall)
}

// Time is the wall clock's part as a time without a monotonic reading.
func (r Reading) Time() time.Time { return time.Unix(0, int64(r.Wall)) }

// IsZero reports whether r was never read.
func (r Reading) IsZero() bool { return r == Reading{} }

// start is the fixed moment that monotonic readings count from.
var start = time.Now()

// System is the machine's own pair of clocks.
type System struct{}

// Now reads both clocks with one call of time.Now.
func (System) Now() Reading {
	now := time.Now()
	return Reading{Mono: now.Sub(start), Wall: time.Duration(now.UnixNano())}
}
