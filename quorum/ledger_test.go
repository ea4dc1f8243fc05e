package quorum_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/quorum"
)

// reads makes what nodes know of a tick from a script, one word a node: "-" silent; else letters
// g granted, r refused, with k knows, u does not, and after a colon the owner of the mark.
func reads(script string) (all []quorum.Read) {
	for word := range strings.FieldsSeq(script) {
		state, owner, _ := strings.Cut(word, ":")
		if state == "-" {
			all = append(all, quorum.Read{})
			continue
		}
		all = append(all, quorum.Read{Answered: true, Granted: state[0] == 'g',
			Knows: state[1] == 'k', Owner: owner, State: "run"})
	}
	return all
}

func TestDecideTick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim, nodes string
		want         quorum.TickVerdict
		owner        string
	}{
		{"nobody knows of a mark", "gk gk gk", quorum.TickFree, ""},
		{"a bare majority was read", "gk gk -", quorum.TickFree, ""},
		{"too few were read", "gk - -", quorum.TickUndecided, ""},
		{"one owner on a majority", "gk:x gk:x gk", quorum.TickTaken, "x"},
		{"refusals count for taken", "rk:x rk:x -", quorum.TickTaken, "x"},
		{"R2: marks of several owners do not add up", "gk:x gk:y gk", quorum.TickFree, ""},
		{"T2: a dead claimer on a minority does not wedge", "gk:x gk gk", quorum.TickFree, ""},
		{"a mark, and one node that was not read", "gk:x gk -", quorum.TickUndecided, "x"},
		{"R1: a refusal without a mark is not read", "gk rk rk", quorum.TickUndecided, ""},
		{"R1: nor is it with another's mark elsewhere", "gk:x gk rk", quorum.TickUndecided, "x"},
		{"T1: a memory younger than the tick is not read", "gk gu gu", quorum.TickUndecided, ""},
		{"T1: nor does it help to catch up", "gu gu gu", quorum.TickUndecided, ""},
		{"T3: marks of an attempt of ours that did not start", "gk:ours gk:ours gk",
			quorum.TickFree, ""},
		{"five nodes, two marks, one silent", "gk:x gk:x gk gk -", quorum.TickUndecided, "x"},
		{"five nodes, one mark, one silent", "gk:x gk gk gk -", quorum.TickFree, ""},
	} {
		got, owner, _ := quorum.DecideTick(reads(c.nodes),
			func(owner string) bool { return owner == "ours" })
		if got != c.want || owner != c.owner {
			t.Errorf("%s: %s: got %d by %q, want %d by %q", c.claim, c.nodes, got, owner, c.want,
				c.owner)
		}
	}
}

// TestDecideTickNeverLetsTwoRun goes through all that three nodes can show after a committed tick:
// whoever is told "free" would run it a second time.
func TestDecideTickNeverLetsTwoRun(t *testing.T) {
	t.Parallel()
	states := []string{"-", "gk", "gu", "rk", "ru"}
	for _, a := range states {
		for _, b := range states {
			for _, c := range states {
				// x is committed on the first two, which show it unless they are silent or forgot.
				show := func(s string) string {
					if s == "gk" || s == "rk" {
						return s + ":x"
					}
					return s
				}
				script := fmt.Sprint(show(a), " ", show(b), " ", c)
				got, _, _ := quorum.DecideTick(reads(script), func(string) bool { return false })
				if got == quorum.TickFree {
					t.Errorf("%s: free, though x may have run it", script)
				}
			}
		}
	}
}
