package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/model/search"
)

// quick is how many states a row may have to be checked by the tests too. The command checks all
// rows.
const quick = 50_000

func TestQuickRowsComeOutAsExpected(t *testing.T) {
	t.Parallel()
	for _, row := range Table() {
		if row.Want.States > quick {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			report := row.Run()
			if differs := row.Want.Differs(report); differs != "" {
				t.Errorf("%s: %s", Outcome(report), differs)
			}
		})
	}
}

// The run that the review gives for P1, found again: B's vote of a node outlives its restart, A's
// plant comes to the node while it waits, and A's extend counts it.
func TestTheRunOfAPlantOnAWaitingNode(t *testing.T) {
	t.Parallel()
	run := find(t, "exclusion/restart within one TTL/plant on a waiting node").Run().Trace
	want := []string{
		"node 3 grants B", "node 3 RESTARTS empty", "node 3 plants A: true (it waits: true)",
		"node 3 extends A: true", "A EXTENDED, valid until 3, sends plants",
		"node 1 grants B", "B WINS, valid until 3",
	}
	rest := run
	for _, step := range want {
		i := slices.Index(rest, step)
		if i < 0 {
			t.Fatalf("no %q in its place in\n%s", step, strings.Join(run, "\n"))
		}
		rest = rest[i+1:]
	}
}

// A rule that can go without anybody noticing is either not needed or not modelled.
func TestEveryRuleIsNeeded(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{} // "exclusion.Rules.Guard": a row fails for want of it alone
	for _, row := range Table() {
		sound, rules := reflect.ValueOf(row.sound), reflect.ValueOf(row.rules)
		var changed []string
		for i := range sound.NumField() {
			rule := sound.Type().String() + "." + sound.Type().Field(i).Name
			if _, known := needed[rule]; !known {
				needed[rule] = false
			}
			if !sound.Field(i).Equal(rules.Field(i)) {
				changed = append(changed, rule)
			}
		}
		if len(changed) == 1 && !row.Want.Sound() {
			needed[changed[0]] = true
		}
	}
	if len(needed) < 30 {
		t.Errorf("only %d rules looked at", len(needed))
	}
	for rule, found := range needed {
		if !found {
			t.Errorf("%s: no row in which it alone is taken away and something breaks", rule)
		}
	}
}

func TestRowsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range Table() {
		if seen[row.Name] {
			t.Errorf("two rows named %q", row.Name)
		}
		seen[row.Name] = true
		if row.Want.States == 0 {
			t.Errorf("%q does not say how many states it has", row.Name)
		}
	}
}

func TestWantTellsOutcomesApart(t *testing.T) {
	t.Parallel()
	all := search.Report{States: 100, Exhausted: true}
	with := func(change func(*search.Report)) search.Report {
		r := all
		change(&r)
		return r
	}
	broken := with(func(r *search.Report) { r.Exhausted, r.Violation = false, "two" })
	tests := []struct {
		name   string
		want   Want
		report search.Report
		same   bool
	}{
		{"holds", holds(100), all, true},
		{"holds with other states", holds(99), all, false},
		{"cut short", holds(100), with(func(r *search.Report) { r.Exhausted = false }), false},
		{"breaks unexpectedly", holds(100), broken, false},
		{"breaks as expected, sooner or later", breaks("two", 50), broken, true},
		{"breaks in another way", breaks("three", 100), broken, false},
		{"does not break", breaks("two", 100), all, false},
		{"stuck unexpectedly", holds(100), with(func(r *search.Report) { r.Stuck = 1 }), false},
		{"stuck as expected", stuck(100, 1, 0), with(func(r *search.Report) { r.Stuck = 1 }), true},
		{"not stuck", stuck(100, 1, 0), all, false},
		{"stuck, and ends", stuck(100, 1, 0),
			with(func(r *search.Report) { r.Stuck, r.Ends = 1, 1 }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.want.Differs(tt.report); (got == "") != tt.same {
				t.Errorf("differs: %q, want none: %t", got, tt.same)
			}
		})
	}
}

func find(t *testing.T, name string) Row {
	t.Helper()
	rows := Table()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no row %q", name)
	}
	return rows[i]
}
