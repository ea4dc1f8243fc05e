package main

import "fmt"

// What a run is judged by where -min says nothing: times redsync with fail-fast, and what the restart
// guard must leave of the throughput. Both are about redis-servers.
const (
	leastTimes = 6
	leastGuard = 0.9
)

// A verdict is what a run is judged by, and what it came to.
type verdict struct {
	ours, theirs string
	times        float64 // as fast as theirs, with judged callers
	least        float64
	none         string // why nothing is judged; "": it is
}

// threshold is what is judged by on such nodes, or why nothing is.
func (s settings) threshold(real bool) (least float64, none string) {
	switch {
	case s.dir != "":
		return 0, "-profile measures ours alone"
	case s.only > 0:
		return 0, "-callers asks for one number of callers alone"
	case s.minGiven && s.min == 0:
		return 0, "-min is 0"
	case s.minGiven:
		return s.min, ""
	case !real:
		return 0, "nodes inside this process say little about time; -min judges all the same"
	case s.guard:
		return leastGuard, ""
	}
	return leastTimes, ""
}

// judge looks at the first library beside the last, with the number of callers that is judged.
func (s settings) judge(real bool, libs []library, samples map[int][][]sample) verdict {
	last := len(libs) - 1
	v := verdict{ours: libs[0].name, theirs: libs[last].name}
	if v.least, v.none = s.threshold(real); v.none == "" {
		v.times = ratioOf(samples[judged][last], samples[judged][0])
	}
	return v
}

// reached reports whether nothing is amiss.
func (v verdict) reached() bool { return v.none != "" || v.times >= v.least }

// String is the last line of a run.
func (v verdict) String() string {
	if v.none != "" {
		return "nothing is judged: " + v.none
	}
	word := "not reached"
	if v.reached() {
		word = "reached"
	}
	return fmt.Sprintf("judged with %d callers: %s is %.2f times as fast as %s, %v times at least"+
		" (-min): %s", judged, v.ours, v.times, v.theirs, v.least, word)
}
