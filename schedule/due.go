package schedule

import (
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

const (
	// mostGrace is the longest Grace that is a default.
	mostGrace = 30 * time.Second
	// leastClaim is the shortest life of a claim lock.
	leastClaim = 20 * time.Millisecond
	// leastInterval is the shortest interval between two ticks of a job.
	leastInterval = 100 * time.Millisecond
	// marksLife is how long marks live at the least.
	marksLife = 7 * 24 * time.Hour
	// mostMargin is how long before the job's next instant gocron is to have an answer: it arms
	// the timer for that only then, and drops an instant that has passed.
	mostMargin = 50 * time.Millisecond
)

// A due is a tick that this replica's schedule says is to be run.
type due struct {
	at    time.Time     // names the tick, on all replicas
	own   time.Time     // the instant on this replica: at, or, of an interval, later in it
	next  time.Time     // the job's next instant on this replica; zero: there is none
	grace time.Duration // how long after own it may be started
}

// newDue makes one of what the schedule says. grace is what was asked for, 0: the default.
func newDue(own, next time.Time, grace time.Duration) due {
	d := due{at: own, own: own, next: next, grace: grace}
	if grace == 0 {
		d.grace = mostGrace
		if !next.IsZero() {
			d.grace = max(min(mostGrace, next.Sub(own)), time.Millisecond)
		}
	}
	return d
}

// inInterval names the tick by the interval that its instant lies in, counted from the epoch, so
// that replicas which started at different moments mean the same.
func (d due) inInterval(interval time.Duration) due {
	d.at = gridFloor(d.own, interval)
	return d
}

// gridFloor is the newest multiple of the interval since the epoch that is not after t.
func gridFloor(t time.Time, interval time.Duration) time.Time {
	since := t.UnixNano()
	into := since % int64(interval)
	if into < 0 {
		into += int64(interval)
	}
	return time.Unix(0, since-into).UTC()
}

// ms is the tick as the nodes name it.
func (d due) ms() int64 { return d.at.UnixMilli() }

// from is the instant after which everything without a mark counts as passed over: what is younger
// is left to its own claim.
func (d due) from() int64 { return d.own.Add(-d.grace).UnixMilli() }

// life is how long the job's marks live: two of its intervals, so that also a yearly job finds
// what was on record of the last tick.
func (d due) life() time.Duration {
	if d.next.IsZero() {
		return marksLife
	}
	return max(marksLife, 2*d.next.Sub(d.at)+d.grace)
}

// patience is how long it may be tried, by a clock that shows now: until Grace is over, and not
// into the job's next instant.
func (d due) patience(now time.Time) time.Duration {
	left := d.own.Add(d.grace).Sub(now)
	if !d.next.IsZero() {
		margin := min(d.next.Sub(d.own)/4, mostMargin)
		left = min(left, d.next.Sub(now)-margin)
	}
	return left
}

// tooLate reports whether Grace is over by the clocks of so many nodes.
func (d due) tooLate(reads []quorum.Read, majority int) bool {
	late := 0
	for _, r := range reads {
		if r.Answered && r.Time > d.own.Add(d.grace).UnixMilli() {
			late++
		}
	}
	return late >= majority
}

// claimTTL is how long a claim outlives its claimer: short enough that two may die within Grace.
func claimTTL(grace, nodeTimeout, maxTTL time.Duration) time.Duration {
	return min(max(grace/4, leastClaim), 4*nodeTimeout, maxTTL)
}
