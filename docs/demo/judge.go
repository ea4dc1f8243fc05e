package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A verdict is what became of the ticks that were due.
type verdict struct {
	jobs      []jobVerdict
	trouble   []string // what must not have happened
	omitted   []string // what the demo did not show, and why
	tokensOut int      // fencing tokens that did not grow
}

type jobVerdict struct {
	name                string
	due, once, twice    int
	cut                 int            // begun and not ended: its replica was killed or frozen
	missed              map[string]int // lawfully, by reason
	unexplained, strays int            // strays: runs of instants that are none
}

// ok reports whether everything was as it has to be.
func (v verdict) ok() bool { return len(v.trouble) == 0 }

// judge counts what the runs recorded against what was due. It looks at nothing that a replica
// believes except to find the reason of a tick that did not run.
func judge(from, until time.Time, records []entry, faults []fault) verdict {
	var v verdict
	for _, job := range jobs {
		v.judgeJob(job.name, job.every, from, until, records, faults)
	}
	v.judgeTokens(records)
	return v
}

func (v *verdict) judgeJob(
	name string, every time.Duration, from, until time.Time, records []entry, faults []fault,
) {
	j := jobVerdict{name: name, missed: make(map[string]int)}
	runs, done := make(map[int64][]entry), make(map[int64]time.Time)
	said := make(map[int64][]entry)
	for _, e := range records {
		switch {
		case e.Job != name:
		case e.Kind == "run":
			runs[e.At] = append(runs[e.At], e)
		case e.Kind == "done":
			done[e.At] = e.came
		case e.Kind == "no":
			said[e.At] = append(said[e.At], e)
		}
	}
	for at := from.Truncate(every); at.Before(until); at = at.Add(every) {
		if at.Before(from) {
			continue
		}
		j.due++
		ms := at.UnixMilli()
		switch n := len(runs[ms]); {
		case n == 1:
			j.once++
			if done[ms].IsZero() {
				j.cut++
			}
		case n > 1:
			j.twice++
			v.trouble = append(v.trouble, fmt.Sprintf("%q at %s ran on %s", name, clockTime(at),
				strings.Join(who(runs[ms]), " and ")))
		default:
			v.miss(&j, at, said[ms], busyAt(at, done), faults)
		}
	}
	for ms := range runs {
		if time.UnixMilli(ms).UnixNano()%int64(every) != 0 {
			j.strays++
			v.trouble = append(v.trouble, fmt.Sprintf("%q ran at %s, which is no instant of it",
				name, clockTime(time.UnixMilli(ms))))
		}
	}
	v.jobs = append(v.jobs, j)
}

// Lawful reasons of a tick that nobody ran.
const (
	passedWhy    = "passed over, the run before or its lock was alive"
	struckWhy    = "winner struck after commit"
	undecidedWhy = "undecided until Grace"
)

// freeing is how long before a tick a run may have ended and its lock still be there.
const freeing = 250 * time.Millisecond

// busyAt reports whether the run before was under way, or had just ended.
func busyAt(at time.Time, ends map[int64]time.Time) bool {
	for ms, end := range ends {
		if ms < at.UnixMilli() && end.After(at.Add(-freeing)) {
			return true
		}
	}
	return false
}

// miss finds the reason of a tick that nobody ran, or counts it as trouble.
func (v *verdict) miss(j *jobVerdict, at time.Time, said []entry, busy bool, faults []fault) {
	words := make(map[string]bool)
	for _, e := range said {
		words[e.Why] = true
	}
	switch hit := struckAt(faults, at); {
	case words["passed over"] && (hit != "" || busy):
		j.missed[passedWhy]++
	case words["taken"] && hit != "":
		j.missed[struckWhy+" ("+hit+")"]++
	case words["undecided"] && hit != "":
		j.missed[undecidedWhy+" ("+hit+")"]++
	default:
		j.unexplained++
		v.trouble = append(v.trouble, fmt.Sprintf("%q at %s did not run; replicas said: %s",
			j.name, clockTime(at), cmp.Or(strings.Join(sortedKeys(words), ", "), "nothing")))
	}
}

// struckAt is what was being done to replicas or nodes around a tick.
func struckAt(faults []fault, at time.Time) string {
	for _, f := range faults {
		end := f.to
		if end.IsZero() {
			end = f.from.Add(2 * time.Second)
		}
		if at.After(f.from.Add(-2*time.Second)) && at.Before(end.Add(time.Second)) {
			return f.what + " " + f.who
		}
	}
	return ""
}

// judgeTokens checks that later ticks of a job have larger fencing tokens.
func (v *verdict) judgeTokens(records []entry) {
	last := make(map[string]entry)
	runs := slices.DeleteFunc(slices.Clone(records), func(e entry) bool { return e.Kind != "run" })
	slices.SortStableFunc(runs, func(a, b entry) int { return cmp.Compare(a.At, b.At) })
	for _, e := range runs {
		if before, ok := last[e.Job]; ok && e.At > before.At && e.Token <= before.Token {
			v.tokensOut++
			v.trouble = append(v.trouble, fmt.Sprintf("%q at %s has token %d, not above %d before it",
				e.Job, clockTime(time.UnixMilli(e.At)), e.Token, before.Token))
		}
		last[e.Job] = e
	}
}

func who(runs []entry) (names []string) {
	for _, e := range runs {
		names = append(names, fmt.Sprintf("%s (token %d)", e.replica, e.Token))
	}
	return names
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinComma(all []string) string { return strings.Join(all, ",") }

func clockTime(t time.Time) string { return t.Format("15:04:05") }

// print shows the table.
func (v verdict) print(out io.Writer) {
	fmt.Fprintln(out, "\nWhat the runs recorded, each with its fencing token:")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "job\tticks due\tran once\tran twice\tmissed lawfully\tmissed, why?\t")
	for _, j := range v.jobs {
		lawful := 0
		for _, n := range j.missed {
			lawful += n
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t\n",
			j.name, j.due, j.once, j.twice, lawful, j.unexplained)
	}
	_ = table.Flush()
	for _, j := range v.jobs {
		if j.cut > 0 {
			fmt.Fprintf(out, "  %s: %d cut short, the replica was killed, frozen or redeployed\n",
				j.name, j.cut)
		}
		for _, why := range sortedKeys(j.missed) {
			fmt.Fprintf(out, "  %s: %d missed: %s\n", j.name, j.missed[why], why)
		}
	}
	for _, o := range v.omitted {
		fmt.Fprintln(out, "  not shown:", o)
	}
	for _, t := range v.trouble {
		fmt.Fprintln(out, "  MUST NOT HAPPEN:", t)
	}
	if v.ok() {
		fmt.Fprintln(out, "No tick ran twice, and none is missing without a lawful reason.")
	}
}
