package main

import (
	"strings"
	"testing"
	"time"
)

// start is the first instant that counts in these tests: of both jobs.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const second, five = 0, 1 // indexes of jobs

// ran are the records of one run: its beginning and, if it was not cut, its end.
func ran(job int, after int, replica string, token uint64, cut ...bool) []entry {
	at := start.Add(time.Duration(after) * time.Second)
	e := entry{replica: replica, came: at, record: record{
		Kind: "run", Job: jobs[job].name, At: at.UnixMilli(), Token: token}}
	if len(cut) > 0 {
		return []entry{e}
	}
	done := e
	done.Kind, done.came = "done", at.Add(jobs[job].takes)
	return []entry{e, done}
}

// refused is what a replica said of a tick that it did not run.
func refused(job int, after int, replica, why string) []entry {
	at := start.Add(time.Duration(after) * time.Second)
	return []entry{{replica: replica, came: at, record: record{
		Kind: "no", Job: jobs[job].name, At: at.UnixMilli(), Why: why}}}
}

func join(parts ...[]entry) (all []entry) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// sound are five seconds in which everything ran.
func sound() [][]entry {
	all := [][]entry{ran(five, 0, "a", 1)}
	for i := range 5 {
		all = append(all, ran(second, i, "b", uint64(i+1)))
	}
	return all
}

// without are sound's without the tick of the job that runs every second, and with others instead.
func without(after int, instead ...[]entry) []entry {
	all := sound()
	return join(append(append(all[:after+1:after+1], instead...), all[after+2:]...)...)
}

func TestJudge(t *testing.T) {
	t.Parallel()
	kill := fault{what: "kill", who: "b", from: start.Add(time.Second), to: start.Add(3 * time.Second)}
	for name, tc := range map[string]struct {
		records []entry
		faults  []fault

		once, twice, cut, unexplained, strays, tokensOut int // of the job every second

		missed  string // a part of the only lawful reason; none: no tick was missed lawfully
		trouble string // a part of the only trouble; none: all is well
	}{
		"everything ran": {records: join(sound()...), once: 5},
		"the order of records says nothing": {
			records: join(sound()[5], sound()[4], sound()[3], sound()[2], sound()[1], sound()[0]), once: 5,
		},
		"twice, on two replicas": {
			records: join(append(sound(), ran(second, 2, "c", 3))...), once: 4, twice: 1,
			trouble: "ran on b (token 3) and c (token 3)",
		},
		"twice, on one replica": {
			records: join(append(sound(), ran(second, 4, "b", 6))...), once: 4, twice: 1,
			trouble: "ran on b (token 5) and b (token 6)",
		},
		"twice is no better for a fault": {
			records: join(append(sound(), ran(second, 4, "c", 6))...), faults: []fault{kill},
			once: 4, twice: 1, trouble: "ran on",
		},
		"missed, and nobody said a word": {
			records: without(2), faults: []fault{kill}, once: 4, unexplained: 1,
			trouble: "replicas said: nothing",
		},
		"missed as taken by one that was killed": {
			records: without(2, refused(second, 2, "c", "taken")), faults: []fault{kill}, once: 4,
			missed: "winner struck after commit (kill b)",
		},
		"missed as taken, and nobody was struck": {
			records: without(2, refused(second, 2, "c", "taken")), once: 4, unexplained: 1,
			trouble: "replicas said: taken",
		},
		"missed as taken long after a fault": {
			records: without(4, refused(second, 4, "c", "taken")),
			faults:  []fault{{what: "kill", from: start.Add(-9 * time.Second), to: start}},
			once:    4, unexplained: 1, trouble: "replicas said: taken",
		},
		"missed as undecided while nodes were down": {
			records: without(2, refused(second, 2, "c", "undecided")),
			faults:  []fault{{what: "node", who: "1", from: start.Add(time.Second)}}, // lasts
			once:    4, missed: "undecided until Grace (node 1)",
		},
		"missed as undecided in fair weather": {
			records: without(2, refused(second, 2, "c", "undecided")), once: 4, unexplained: 1,
			trouble: "replicas said: undecided",
		},
		"missed for another reason": {
			records: without(2, refused(second, 2, "c", "other"), refused(second, 2, "d", "late")),
			faults:  []fault{kill}, once: 4, unexplained: 1, trouble: "replicas said: late, other",
		},
		"passed over for a run that was cut": {
			records: join(append(append(sound()[:2:2], ran(second, 1, "b", 2, true),
				refused(second, 2, "c", "passed over")), sound()[4:]...)...),
			faults: []fault{kill}, once: 4, cut: 1, missed: "passed over",
		},
		"passed over, and no run was under way": {
			records: without(2, refused(second, 2, "c", "passed over")), once: 4, unexplained: 1,
			trouble: "replicas said: passed over",
		},
		"cut short": {
			records: without(2, ran(second, 2, "b", 3, true)), faults: []fault{kill}, once: 5, cut: 1,
		},
		"before and after the time that counts": {
			records: join(append(sound(), ran(second, -1, "a", 0), ran(second, 5, "a", 6))...), once: 5,
		},
		"a token that falls": {
			records: without(2, ran(second, 2, "c", 1)), once: 5, tokensOut: 1,
			trouble: "has token 1, not above 2 before it",
		},
		"a token that stays": {
			records: without(4, ran(second, 4, "c", 4)), once: 5, tokensOut: 1,
			trouble: "has token 4, not above 4 before it",
		},
		"a run of no instant": {
			records: join(append(sound(), []entry{{replica: "c", record: record{Kind: "run",
				Job: jobs[second].name, At: start.UnixMilli() + 4500, Token: 6}}})...),
			once: 5, strays: 1, trouble: "which is no instant of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(start, start.Add(5*time.Second), tc.records, tc.faults)
			j := v.jobs[second]
			if j.due != 5 || v.jobs[five].due != 1 || v.jobs[five].once != 1 {
				t.Errorf("due %d; of the other job due %d, once %d; want 5, 1, 1",
					j.due, v.jobs[five].due, v.jobs[five].once)
			}
			got := [...]int{j.once, j.twice, j.cut, j.unexplained, j.strays, v.tokensOut}
			want := [...]int{tc.once, tc.twice, tc.cut, tc.unexplained, tc.strays, tc.tokensOut}
			if got != want {
				t.Errorf("once, twice, cut, unexplained, strays, tokens: got %v, want %v", got, want)
			}
			wantOnly(t, "lawful reasons", sortedKeys(j.missed), tc.missed)
			wantOnly(t, "trouble", v.trouble, tc.trouble)
			if v.ok() != (tc.trouble == "") {
				t.Errorf("ok is %v", v.ok())
			}
		})
	}
}

// wantOnly wants one text with that part in it, or none.
func wantOnly(t *testing.T, what string, got []string, part string) {
	t.Helper()
	if part == "" && len(got) == 0 || part != "" && len(got) == 1 && strings.Contains(got[0], part) {
		return
	}
	t.Errorf("%s: got %q, want only %q", what, got, part)
}

func TestTheTableFitsATerminal(t *testing.T) {
	t.Parallel()
	records := without(2, refused(second, 2, "c", "passed over"))
	faults := []fault{{what: "redeploy", who: "web-3", from: start.Add(time.Second)}}
	v := judge(start, start.Add(5*time.Second), records, faults)
	v.jobs[second].cut = 12
	v.jobs[second].missed[struckWhy+" (redeploy web-3b)"] = 10
	v.jobs[second].missed[undecidedWhy+" (redeploy web-3b)"] = 10
	v.omitted = []string{"nobody was killed: no run was caught within 2.7s"}
	var out strings.Builder
	v.print(&out)
	if !strings.Contains(out.String(), "not shown: nobody was killed") {
		t.Errorf("the table does not say what was not shown:\n%s", out.String())
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 {
			t.Errorf("a line of %d columns: %s", len(line)-1, line)
		}
	}
}
