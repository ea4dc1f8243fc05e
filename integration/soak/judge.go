package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A verdict is what became of the ticks that were due.
type verdict struct {
	due, once, twice, cut int
	missed                map[string]int // lawfully, by reason
	missedAt              map[int64]string
	trouble               []string // what must not have happened
}

// recovery is how long after its end a fault can cost ticks: a node without its memory gives no vote
// for MaxTTL, and a dead winner's run lock lives as long.
const recovery = ttl + time.Second

// judge counts what was run against what was due. The reason of a tick that was not run has to be one
// of those that docs/guarantees.md gives, and there has to have been a fault that can be its cause.
func judge(from, until time.Time, records []record, faults []fault) verdict {
	v := verdict{missed: map[string]int{}, missedAt: map[int64]string{}}
	runs, done := map[int64][]record{}, map[int64]bool{}
	said := map[int64]map[string]bool{}
	for _, r := range records {
		switch r.Kind {
		case "run":
			runs[r.At] = append(runs[r.At], r)
		case "done":
			done[r.At] = true
		case "no":
			if said[r.At] == nil {
				said[r.At] = map[string]bool{}
			}
			said[r.At][r.Why] = true
		}
	}
	for at := from; at.Before(until); at = at.Add(time.Second) {
		v.due++
		ms := at.UnixMilli()
		switch n := len(runs[ms]); {
		case n == 1:
			v.once++
			if !done[ms] {
				v.cut++
			}
		case n > 1:
			v.twice++
			v.fault("%s ran on %s and %s", clockTime(ms), runs[ms][0].Replica, runs[ms][1].Replica)
		default:
			v.miss(ms, said[ms], faults)
		}
	}
	v.judgeTokens(runs)
	return v
}

func (v *verdict) fault(format string, args ...any) {
	v.trouble = append(v.trouble, fmt.Sprintf(format, args...))
}

// miss finds the reason of a tick that nobody ran.
func (v *verdict) miss(ms int64, said map[string]bool, faults []fault) {
	at := time.UnixMilli(ms)
	for _, f := range faults {
		// A winner that is struck up to the end of its run loses the tick.
		if at.Before(f.from.Add(-time.Second)) || at.After(f.to.Add(recovery)) {
			continue
		}
		why := ""
		switch {
		case f.replica >= 0 && (said["taken"] || said["passed over"]):
			why = "the winner was struck after its commit, or its run lock lived on"
		case f.majority:
			why = "no majority of the nodes, or of their votes"
		case f.node >= 0 && said["undecided"]:
			why = "undecided until Grace"
		default:
			continue
		}
		why += ": " + map[bool]string{true: "replica", false: "node"}[f.replica >= 0] + " " + f.what
		v.missed[why]++
		v.missedAt[ms] = why
		return
	}
	words := strings.Join(slices.Sorted(maps.Keys(said)), ", ")
	v.fault("%s did not run, for no reason; replicas said: %s", clockTime(ms), cmp.Or(words, "nothing"))
}

// judgeTokens: later ticks have larger fencing tokens.
func (v *verdict) judgeTokens(runs map[int64][]record) {
	var last uint64
	for _, ms := range slices.Sorted(maps.Keys(runs)) {
		for _, r := range runs[ms] {
			if r.Token <= last {
				v.fault("%s has token %d, not above %d before it", clockTime(ms), r.Token, last)
			}
			last = r.Token
		}
	}
}

func clockTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05") }

// print shows the table.
func (v verdict) print(out io.Writer) {
	lawful := 0
	for _, n := range v.missed {
		lawful += n
	}
	fmt.Fprintf(out, "\nticks due %d   ran once %d   ran twice %d   missed with a reason %d   wrong %d\n",
		v.due, v.once, v.twice, lawful, len(v.trouble))
	if v.cut > 0 {
		fmt.Fprintf(out, "  %d runs were cut short: their replica was killed, or lost its lock\n", v.cut)
	}
	for _, why := range slices.Sorted(maps.Keys(v.missed)) {
		fmt.Fprintf(out, "  %d missed: %s\n", v.missed[why], why)
	}
	for _, what := range v.trouble {
		fmt.Fprintln(out, "  MUST NOT HAPPEN:", what)
	}
}
