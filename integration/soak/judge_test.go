package main

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// on is a record of the tick so many seconds after noon.
func on(second int, kind, replica string, token uint64, why string) record {
	at := noon.Add(time.Duration(second) * time.Second).UnixMilli()
	return record{Kind: kind, Replica: replica, At: at, Token: token, Why: why}
}

func TestTheJudgeSeesWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	killed := []fault{{what: "killed", node: -1, from: noon, to: noon.Add(time.Second)}}
	for name, tc := range map[string]struct {
		records []record
		faults  []fault
		want    string // in the only trouble; none: lawful
	}{
		"all once": {records: []record{on(0, "run", "a", 1, ""), on(1, "run", "b", 2, "")}},
		"one twice": {records: []record{on(0, "run", "a", 1, ""), on(1, "run", "b", 2, ""),
			on(1, "run", "a", 3, "")}, want: "12:00:01 ran on b and a"},
		"a token that falls": {records: []record{on(0, "run", "a", 5, ""), on(1, "run", "b", 4, "")},
			want: "has token 4"},
		"missed, and nothing was wrong": {records: []record{on(0, "run", "a", 1, ""),
			on(1, "no", "b", 0, "taken")}, want: "12:00:01 did not run"},
		"missed, its winner killed": {records: []record{on(0, "run", "a", 1, ""),
			on(1, "no", "b", 0, "taken")}, faults: killed},
		"missed, and nobody said why": {records: []record{on(0, "run", "a", 1, "")}, faults: killed,
			want: "said: nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(noon, noon.Add(2*time.Second), tc.records, tc.faults)
			lawful := tc.want == ""
			if lawful && len(v.trouble) > 0 ||
				!lawful && (len(v.trouble) != 1 || !strings.Contains(v.trouble[0], tc.want)) {
				t.Errorf("got %q, want %q", v.trouble, tc.want)
			}
		})
	}
}
