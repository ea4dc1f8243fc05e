package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A verdict is what became of the ticks that were due.
type verdict struct {
	due, once, twice int
	cut              int            // begun and not ended
	by               map[string]int // replica: ticks that it ran
	missed           []miss         // lawfully
	stalls           []stall        // of the machine
	trouble          []string       // what must not have happened
}

// A miss is a tick that nobody ran, and why.
type miss struct {
	at time.Time
	reason
}

// early is how far before its instant a run may be seen to begin: what a node's clock may step by
// unnoticed. All clocks are this machine's, but for one node's.
const early = 100 * time.Millisecond

// judge counts what was run against what was due. A tick that was not run has to have one of the
// reasons of docs/guarantees.md, and the records have to show it: see explain.
func judge(
	from, until time.Time, records []record, faults []fault, stalls []stall,
) verdict {
	v := verdict{by: map[string]int{}, stalls: ofMachine(stalls, faults)}
	runs, done, said := map[int64][]record{}, map[int64]bool{}, map[int64][]record{}
	for _, r := range records {
		switch r.Kind {
		case isRun:
			runs[r.At] = append(runs[r.At], r)
		case isDone:
			done[r.At] = true
		case isNo:
			said[r.At] = append(said[r.At], r)
		}
	}
	for at := from; at.Before(until); at = at.Add(every) {
		v.due++
		ms := at.UnixMilli()
		switch n := len(runs[ms]); {
		case n == 1:
			v.once++
			v.by[place(runs[ms][0].Replica)]++
			if !done[ms] {
				v.cut++
			}
		case n > 1:
			v.twice++
		default:
			v.miss(at, said[ms], runs, faults)
		}
	}
	v.judgeRuns(runs)
	v.judgeTokens(runs)
	return v
}

// judgeRuns: all that was run was an instant of the schedule, had come, and ran once, also before
// and after what is counted.
func (v *verdict) judgeRuns(runs map[int64][]record) {
	for _, ms := range slices.Sorted(maps.Keys(runs)) {
		at, all := time.UnixMilli(ms), runs[ms]
		if !at.Equal(at.Truncate(every)) {
			v.fault("%s.%03d ran, which is no instant of the schedule", clockTime(at), ms%1000)
		}
		if len(all) > 1 {
			v.fault("%s ran on %s and %s", clockTime(at), all[0].Replica, all[1].Replica)
		}
		for _, r := range all {
			if ahead := at.Sub(r.came); ahead > early {
				v.fault("%s ran on %s, %v before it was due", clockTime(at), r.Replica, ahead)
			}
		}
	}
}

// place is the replica that a process is: "web-2" of "web-2.1".
func place(process string) string {
	name, _, _ := strings.Cut(process, ".")
	return name
}

func (v *verdict) fault(format string, args ...any) {
	v.trouble = append(v.trouble, fmt.Sprintf(format, args...))
}

func (v *verdict) miss(at time.Time, said []record, runs map[int64][]record, faults []fault) {
	if why, ok := explain(at, said, runs, faults, v.stalls); ok {
		v.missed = append(v.missed, miss{at, why})
		return
	}
	words := "nothing"
	for i, r := range said {
		if i == 0 {
			words = ""
		}
		words += fmt.Sprintf("\n      %s: %s", r.Replica, r.Text)
	}
	v.fault("%s did not run, and the records show no reason; replicas said: %s",
		clockTime(at), words)
}

// judgeTokens: later ticks have larger fencing tokens.
func (v *verdict) judgeTokens(runs map[int64][]record) {
	var last uint64
	for _, ms := range slices.Sorted(maps.Keys(runs)) {
		for _, r := range runs[ms] {
			if r.Token <= last {
				v.fault("%s has token %d, not above %d before it",
					clockTime(time.UnixMilli(ms)), r.Token, last)
			}
			last = r.Token
		}
	}
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05") }

// print shows the table.
func (v verdict) print(out io.Writer, faults []fault) {
	fmt.Fprintf(out, "\nticks due %d   ran once %d   ran twice %d   ", v.due, v.once, v.twice)
	fmt.Fprintf(out, "missed with a reason %d   wrong %d\n", len(v.missed), len(v.trouble))
	for i := range replicas {
		name := fmt.Sprintf("web-%d", i+1)
		fmt.Fprintf(out, "  %s ran %d, its clock off by %v\n", name, v.by[name], standing[i])
	}
	if v.cut > 0 {
		fmt.Fprintf(out, "  %d runs were cut short: replica killed, or lock lost\n", v.cut)
	}
	kinds := map[string]int{}
	for _, m := range v.missed {
		kinds[m.kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(out, "  %d missed: %s\n", kinds[kind], kind)
	}
	v.printFaults(out, faults)
	fmt.Fprintf(out, "  the machine: a PING took longer than %v %d times\n",
		slowAnswer, len(v.stalls))
	for _, m := range v.missed {
		fmt.Fprintf(out, "  %s missed: %s\n", clockTime(m.at), m.detail)
	}
	for _, what := range v.trouble {
		fmt.Fprintln(out, "  MUST NOT HAPPEN:", what)
	}
}

// printFaults shows how often each happened, and how many ticks it took.
func (v verdict) printFaults(out io.Writer, faults []fault) {
	type count struct{ times, took int }
	counts := map[string]*count{}
	for _, f := range faults {
		name := f.kind()
		if counts[name] == nil {
			counts[name] = &count{}
		}
		counts[name].times++
		for _, m := range v.missed {
			if m.fault.from.Equal(f.from) {
				counts[name].took++
			}
		}
	}
	fmt.Fprintf(out, "  %d faults:\n", len(faults))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		n := counts[name]
		fmt.Fprintf(out, "    %-48s x%-3d ticks that it took: %d\n", name, n.times, n.took)
	}
}
