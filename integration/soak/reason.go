package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A reason is why a tick was lawfully missed: what replicas wrote of it at the time, and the fault
// that made them.
type reason struct {
	kind   string // of those that docs/guarantees.md gives
	detail string // with names and times
	fault  fault
}

// recovery is how long after its end a fault can cost ticks: a node without its memory gives no
// vote for MaxTTL from when it is first spoken to, and a struck replica's run lock lives as long.
const recovery = ttl + every + 500*time.Millisecond

// beforehand is how far a tick's instant may lie behind the strike that cost its run, beside the
// reverse: clocks of processes are read at different moments.
const beforehand = 300 * time.Millisecond

// A clue is what one replica wrote of a tick that nobody ran, and a fault around that time.
type clue struct {
	at time.Time // the tick's instant
	record
	fault
	runs map[int64][]record // of all ticks
}

// explain finds the reason of a tick that nobody ran. A fault alone is none: a replica has to have
// written at the time who had the tick, or which nodes gave no vote, and the fault has to have
// struck just these, and when it counts. Nodes have to have been struck before the record was
// written; a winner may be struck after it was seen to have the tick.
func explain(
	at time.Time, said []record, runs map[int64][]record, faults []fault, stalls []stall,
) (reason, bool) {
	for _, try := range []func(clue) (reason, bool){
		noMajority, struckWinner, runLockLivesOn, unknownMarks,
	} {
		for _, r := range said {
			for _, f := range faults {
				if !f.mayCost(at) {
					continue
				}
				if why, ok := try(clue{at, r, f, runs}); ok {
					why.detail += "; " + f.String()
					why.fault = f
					return why, true
				}
			}
		}
	}
	for _, r := range said {
		if why, ok := tooSlow(at, r, faults, stalls); ok {
			return why, true
		}
	}
	return reason{}, false
}

// mayCost reports whether the fault was then, or had effects.
func (f fault) mayCost(at time.Time) bool {
	return !at.Add(grace).Before(f.from) && !at.After(f.to.Add(recovery))
}

// wasBefore reports whether the fault had begun by then.
func (f fault) wasBefore(then time.Time) bool { return !f.from.After(then) }

// noMajority: so many nodes gave this replica no vote that there was no majority, all of them
// struck.
func noMajority(c clue) (reason, bool) {
	silent := c.struck(c.silent)
	return reason{
		kind:   "no majority of the nodes",
		detail: fmt.Sprintf("%s had no vote of nodes %s", c.Replica, numbers(silent)),
	}, (c.Why == undecided || c.Why == tooLate) && len(silent) >= quorum && c.wasBefore(c.came)
}

// struckWinner: another replica had the tick on record, or had claimed it, and was struck before
// its run began. Where its ways were struck it may have a majority and never hear of that.
func struckWinner(c clue) (reason, bool) {
	words := map[string]string{taken: "had it on record", undecided: "had claimed it"}[c.Why]
	last := c.from
	if c.onWays {
		last = c.to
	}
	return reason{
		kind:   "its winner was struck before the run began",
		detail: fmt.Sprintf("%s says that %s %s", c.Replica, c.Holder, words),
	}, words != "" && c.hitsHolder() && !c.at.After(last.Add(beforehand))
}

// runLockLivesOn: the tick was passed over, since the run lock of an earlier tick was still there:
// of a replica that was struck, or could not free it, since a majority of the nodes was.
func runLockLivesOn(c clue) (reason, bool) {
	var earlier time.Time // the holder's run before
	for ms, all := range c.runs {
		at := time.UnixMilli(ms)
		if all[0].Replica == c.Holder && at.Before(c.at) && at.After(earlier) {
			earlier = at
		}
	}
	isStruck := c.hitsHolder() || len(c.nodes) >= quorum
	// Struck before that run's lock was gone by itself.
	isInTime := !c.to.Before(earlier) && c.wasBefore(earlier.Add(takes+ttl)) && c.wasBefore(c.came)
	return reason{
		kind: "passed over: the run lock of the run before could not be freed",
		detail: fmt.Sprintf("%s met the run lock of %s, which ran %s", c.Replica, c.Holder,
			clockTime(earlier)),
	}, c.Why == passedOver && isStruck && !earlier.IsZero() && isInTime
}

// unknownMarks: some nodes have a replica's mark, and others that were struck may have more of
// them.
func unknownMarks(c clue) (reason, bool) {
	silent := c.struck(c.silent)
	return reason{
		kind: "undecided until Grace: nodes that may know more were struck",
		detail: fmt.Sprintf("%s saw marks of %s, and nothing of nodes %s", c.Replica, c.Holder,
			numbers(silent)),
	}, c.Why == undecided && c.Holder != "" && len(silent) > 0 && c.wasBefore(c.came)
}

// hitsHolder reports whether the fault stopped, or cut off, who was seen to have it. A wrong clock
// of a replica is no reason for anything.
func (c clue) hitsHolder() bool {
	return c.process != "" && c.process == c.Holder && (c.stops || c.onWays)
}

// struck are those of these nodes that the fault struck.
func (f fault) struck(of []int) (struck []int) {
	for _, n := range of {
		if slices.Contains(f.nodes, n) {
			struck = append(struck, n)
		}
	}
	slices.Sort(struck)
	return slices.Compact(struck)
}

// kind is the fault without names and times.
func (f fault) kind() string {
	what := f.what
	if f.replica >= 0 {
		return "replica: " + what
	}
	if !strings.HasPrefix(what, "majority") && len(f.nodes) > 1 {
		what = fmt.Sprintf("%d of %d %s", len(f.nodes), nodes, what)
	}
	return "nodes: " + what
}
