package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVerdictsHaveThreeValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		target target
		want   string
	}{
		{atLeast("", 10, 10, true, times), "reached"},
		{atLeast("", 10, 9.99, true, times), "not reached"},
		{atMost("", 0.75, 0.75, true, times), "reached"},
		{atMost("", 0.75, 0.76, true, times), "not reached"},
		{atMost("", 0.75, 0, false, times), "not measured"},
	} {
		if got := tc.target.verdict(); got != tc.want {
			t.Errorf("%v of %v: got %q, want %q", tc.target.got, tc.target.limit, got, tc.want)
		}
	}
}

// at makes samples of these times per pair.
func at(times ...time.Duration) []pairSample {
	var all []pairSample
	for _, d := range times {
		all = append(all, pairSample{perPair: d, allocs: 39, bytes: 3001, commands: 2})
	}
	return all
}

// made are results whose ratios are known.
func made() results {
	names := []string{oursName, "redsync", "redsync fail-fast", bareName, leanName, waitName,
		oursIn(oneDead)}
	redsync := []bool{false, true, true, false, false, false, false}
	return results{
		form: form{name: "made", rounds: 3},
		pairs: []pairResult{
			{cell: pairCell{nodes: 5, callers: 1}, names: names[:3], redsync: redsync[:3],
				samples: [][]pairSample{at(8, 8, 8), at(20, 20, 20), at(10, 10, 10)}},
			{cell: pairCell{nodes: 5, callers: 64}, names: names[:3], redsync: redsync[:3],
				samples: [][]pairSample{at(1, 1, 1), at(9, 12, 20), at(11, 11, 11)}},
			{cell: pairCell{nodes: 5, callers: 512, bare: true, troubles: []trouble{oneDead}},
				names: names, redsync: redsync,
				samples: [][]pairSample{at(10, 10, 10), at(130, 130, 130), at(120, 120, 120),
					at(8, 8, 8), at(5, 5, 5), at(8, 8, 8), at(12, 12, 12)}},
		},
		handoffs: []handoffResult{{cell: handoffCell{16, 17, 0}, peers: passingPeers(),
			samples: [][]handoffSample{
				{{perSecond: 1000, p50: 40, p99: 60, err: errors.New("broken once")}},
				{{perSecond: 10}}, {{perSecond: 20}}, {{perSecond: 4000, p50: 15}}, {{perSecond: 5000, p50: 20}},
				{{perSecond: 100}},
			}}},
		waits: []waitResult{{waiters: 16, peers: waitingPeers(),
			samples: [][]waitSample{{{commands: 0.5}}, {{}}, {{}}, {{commands: 1}}, {{}}}}},
		elections: []electionResult{{most: time.Millisecond, contenders: 2, peers: quorumPeers(),
			tallies: []tally{{elections: 5}, {elections: 5, none: 3}, {elections: 5}}}},
	}
}

func TestTargetsAreJudgedByTheIssuesRatios(t *testing.T) {
	t.Parallel()
	r := made()
	got := map[string]string{}
	for _, one := range r.targets() {
		got[one.claim] = one.measuredAs() + " " + one.verdict()
	}
	for claim, want := range map[string]string{
		"64 callers: at least 10x redsync's best":                                 "11.0x reached",
		"512 callers: at least 12x redsync's best":                                "12.0x reached",
		"1 caller: at most 0.75x of redsync's best latency":                       "0.80x not reached",
		"512 callers, " + string(oneDead) + ": at most 1.10x of the time without": "1.20x not reached",
		"512 callers: within 1.4x of the ceiling":                                 "1.25x reached",
		"64 callers: at most 40 allocations per pair":                             "39 reached",
		"64 callers: at most 3 KB (3,000 bytes) per pair":                         "3001 not reached",
		"16 waiters: at least 50x redsync's hand-offs per second":                 "50.0x reached",
		"16 waiters: under 1 command per waiter and second":                       "0.50 reached",
		"5 elections: none without a winner":                                      "0 reached",
		"5 elections: none with two winners":                                      "0 reached",
		"16 waiters: median from Unlock to the next holder at most rueidislock's, on loopback, five" +
			" nodes to its one": "2.00x not reached",
		"16 waiters: median from Unlock to the next holder at most rueidislock's, on loopback, one" +
			" node to its one": "0.75x reached",
	} {
		if got[claim] != want {
			t.Errorf("%s: got %q, want %q", claim, got[claim], want)
		}
		delete(got, claim)
	}
	for claim, verdict := range got {
		t.Errorf("not expected: %s: %s", claim, verdict)
	}
}

func TestPairsWithDelayAreJudgedByTheIdeal(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	cell := func(callers int, took ...time.Duration) pairResult {
		return pairResult{cell: pairCell{nodes: 5, callers: callers, delay: 20 * ms},
			names: []string{oursName}, redsync: []bool{false}, samples: [][]pairSample{at(took...)}}
	}
	r := results{pairs: []pairResult{cell(1, 44*ms, 40*ms, 60*ms), cell(64, 40*ms/64, ms, ms/2)}}
	got := r.targets()
	if len(got) != 2 || got[0].measuredAs() != "1.10x" || got[0].verdict() != "not reached" ||
		got[1].measuredAs() != "1.00x" || got[1].verdict() != "reached" {
		t.Errorf("got %+v, want 1.10x, not reached, and 1.00x, reached", got)
	}
	table := r.pairTable()
	if row := table.rows[0]; row[len(row)-2] != "20ms" || row[len(row)-1] != "1.10x" {
		t.Errorf("got the row %q, want it to end in the delay and what it is to the ideal", row)
	}
}

func TestHeldLocksAndTicksAreJudgedWhereThereAreEnough(t *testing.T) {
	t.Parallel()
	r := results{
		holdings: []holdingResult{{locks: 1000, bytes: 5000},
			{locks: 100_000, bytes: 600, goroutines: 101, held: 100_000, cores: 0.5}},
		ticks: []tickResult{
			{cell: tickCell{3, 5000}, name: gocronName, samples: []tickSample{{repeated: 9}}},
			{cell: tickCell{3, 1}, name: oursName, samples: []tickSample{{missing: 1}}},
			{cell: tickCell{3, 5000}, name: oursName, samples: []tickSample{
				{took: 4 * time.Second, repeated: 1}, {took: time.Second}, {took: 2 * time.Second}}}},
	}
	var got []string
	for _, one := range r.targets() {
		got = append(got, one.measuredAs()+" "+one.verdict())
	}
	want := []string{"600 reached", "101 not reached", "0 reached", "0.50 reached", "2 reached",
		"1 not reached"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnOutageIsJudgedByWhatWasBefore(t *testing.T) {
	t.Parallel()
	r := results{outages: []outageResult{{cell: outageCell{trouble: oneDead, callers: 2},
		before: 100, during: 89, well: usage{goroutines: 10}, most: 110,
		first: usage{heap: 1000}, last: usage{heap: 1200}, back: 900 * time.Millisecond}}}
	var got []string
	for _, one := range r.targets() {
		got = append(got, one.measuredAs()+" "+one.verdict())
	}
	want := []string{"100 reached", "1.20x not reached", "0.89x not reached", "0.90 reached"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNothingMeasuredIsNothingJudged(t *testing.T) {
	t.Parallel()
	r := results{}
	if got := r.targets(); len(got) != 0 {
		t.Errorf("got %+v, want no target", got)
	}
}

func TestADocumentHasEverything(t *testing.T) {
	t.Parallel()
	d := document{command: "make bench", at: time.Unix(0, 0), results: made(),
		machine: machine{cpu: "a CPU", cpus: 2, os: "an OS", goVer: "go1", redis: "7.0",
			libs: []string{"lib v1"}, commit: "abc+changes"}}
	d.results.form.about, d.results.form.more = "little", "much"
	page := d.markdown("bench.svg")
	for _, want := range []string{"# Benchmarks", "`make bench`", "a CPU, 2 CPUs, an OS", "lib v1",
		"redis-server 7.0", "(bench.svg)", "## Targets", "not reached", "broken once", "## Elections",
		"1970-01-01 00:00 UTC", "- commit: abc+changes\n",
		"- this is the made form: little. `make bench-full` has more: much\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page:\n%s", want, page)
		}
	}
	d.machine.commit, d.results.form.more = "", ""
	if page := d.markdown(""); strings.Contains(page, "commit:") || strings.Contains(page, "has more") {
		t.Errorf("a page says what is not known, or that there is more than all:\n%s", page)
	}
	if strings.Contains(d.markdown(""), "![") {
		t.Error("a page without a chart shows one")
	}
	for _, one := range d.results.bars() {
		if !drawable(one.times) {
			t.Errorf("no number for the bar %q", one.label)
		}
	}
}

// What the notes say of the bare scripts is true of each row's.
func TestTheNotesDoNotContradictTheRows(t *testing.T) {
	t.Parallel()
	page := (&document{results: made()}).markdown("")
	for _, wrong := range []string{"and the bare scripts, ask all nodes", "| ours is |"} {
		if strings.Contains(strings.Join(strings.Fields(page), " "), wrong) {
			t.Errorf("the page says %q", wrong)
		}
	}
}

func TestATallyTellsNoneFromSeveral(t *testing.T) {
	t.Parallel()
	lost, won := bid{err: errors.New("lost"), took: 1}, bid{took: 7}
	var got tally
	got.count([]bid{lost, lost})
	got.count([]bid{lost, won})
	got.count([]bid{won, won})
	if got.elections != 3 || got.none != 1 || got.several != 1 ||
		!slices.Equal(got.took, []time.Duration{7, 7, 7}) {
		t.Errorf("got %+v, want three elections, one without a winner and one with two", got)
	}
}

func TestAValueIsFoundByItsName(t *testing.T) {
	t.Parallel()
	text := "redis_version:7.0.15\r\nmodel name\t: A CPU: fast\nPRETTY_NAME=\"An OS\"\n"
	for _, tc := range [][3]string{
		{"redis_version", ":", "7.0.15"}, {"model name", ":", "A CPU: fast"},
		{"PRETTY_NAME", "=", "An OS"}, {"missing", ":", ""},
	} {
		if got := valueOf(text, tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s: got %q, want %q", tc[0], got, tc[2])
		}
	}
}

func TestTargetsSayWhatBoundsThem(t *testing.T) {
	t.Parallel()
	r := made()
	for claim, want := range map[string]string{
		"512 callers: at least 12x redsync's best":          "24.0x: " + leanly + "; 15.0x: " + waiting,
		"64 callers: at least 10x redsync's best":           "", // no bare scripts there
		"512 callers: within 1.4x of the ceiling":           "",
		"1 caller: at most 0.75x of redsync's best latency": "",
	} {
		found := false
		for _, one := range r.targets() {
			if one.claim == claim {
				found = true
				if one.bound != want {
					t.Errorf("%s: bound %q, want %q", claim, one.bound, want)
				}
			}
		}
		if !found {
			t.Errorf("no target %q", claim)
		}
	}
}

func TestOneCallersTargetSaysWhetherWaitingAloneIsBelowIt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		waits time.Duration
		want  string
	}{
		{86, "0.60x: " + alone + "; 0.86x: " + waiting + "; even that is above 0.75x"},
		{75, "0.60x: " + alone + "; 0.75x: " + waiting + "; that alone is within 0.75x"},
	} {
		r := results{pairs: []pairResult{{cell: pairCell{nodes: 5, callers: 1, bare: true},
			names:   []string{oursName, "redsync", bareName, waitName},
			redsync: []bool{false, true, false, false},
			samples: [][]pairSample{at(110), at(100), at(60), at(tc.waits)}}}}
		if got := r.targets(); len(got) != 1 || got[0].bound != tc.want {
			t.Errorf("got %+v, want one target with the bound %q", got, tc.want)
		}
	}
}

func TestFromAfarWhatWaitingAloneTakesIsABound(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	r := results{farTrip: 21 * ms, pairs: []pairResult{{
		cell:  pairCell{nodes: 5, callers: 64, delay: targetDelay, waits: true},
		names: []string{oursName, waitName}, redsync: []bool{false, false},
		samples: [][]pairSample{at(ms), at(50 * ms / 64)}}}}
	want := "1.05x: two lone PINGs, one after the other, over the same delay; 1.25x: " + waiting
	if got := r.targets(); len(got) != 1 || got[0].bound != want {
		t.Errorf("got %+v, want one target with the bound %q", got, want)
	}
}

func TestAHandoffIsBoundByWhatFreeingAndTakingTake(t *testing.T) {
	t.Parallel()
	r := results{
		pairs: []pairResult{{cell: pairCell{nodes: 5, callers: 1}, names: []string{oursName, waitName},
			redsync: []bool{false, false}, samples: [][]pairSample{at(50), at(12, 15, 90)}}},
		handoffs: []handoffResult{{cell: handoffCell{2, 3, 0}, trip: 2, peers: passingPeers()[:1],
			samples: [][]handoffSample{{{perSecond: 1, p99: 40}}}}},
	}
	want := "7.50: a caller alone, " + waiting + ", to free and to take"
	for _, one := range r.targets() {
		if strings.HasPrefix(one.claim, "2 waiters") && one.measuredAs() == "20" && one.bound == want {
			return
		}
	}
	t.Errorf("got %+v, want one of 2 waiters, 20, bound by %q", r.targets(), want)
}

func TestAHandoffFromAfarIsJudgedBesideRueidislocks(t *testing.T) {
	t.Parallel()
	samples := make([][]handoffSample, len(passingPeers()))
	for i := range samples {
		samples[i] = []handoffSample{{p50: 20}}
	}
	samples[0][0].p50 = 10
	r := results{handoffs: []handoffResult{{cell: handoffCell{16, 17, handoffDelay},
		peers: passingPeers(), samples: samples}}}
	got := r.targets()
	if len(got) != 1 || got[0].measuredAs() != "0.50x" || got[0].verdict() != "reached" ||
		!strings.Contains(got[0].claim, "10ms of added delay") {
		t.Errorf("got %+v, want one target with 10ms of added delay, 0.50x, reached", got)
	}
}
