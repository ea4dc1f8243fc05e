package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestEveryElectionHasExactlyOneWinner is the short form of the command.
func TestEveryElectionHasExactlyOneWinner(t *testing.T) {
	t.Parallel()
	s := settings{elections: 20, contenders: []int{2, 5, 20}, delay: 2 * time.Millisecond,
		pause: 5 * time.Millisecond, nodes: 5, seed: uint64(time.Now().UnixNano()), oursOnly: true}
	var report strings.Builder
	ok, err := run(t.Context(), s, &report, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Errorf("an election had no winner, or two:\n%s", report.String())
	}
}

func TestTallyTellsNoneFromSeveral(t *testing.T) {
	t.Parallel()
	lost, won := bid{err: io.EOF, took: 1}, bid{took: 7}
	var got tally
	got.count("none", []bid{lost, lost})
	got.count("one", []bid{lost, won})
	got.count("two", []bid{won, won})
	if got.elections != 3 || got.none != 1 || got.several != 1 || len(got.errs) != 2 {
		t.Errorf("got %+v, want three elections, one without a winner and one with two", got)
	}
	if q := got.quantile(0.5); q != 7 {
		t.Errorf("the median is %v, want that of the winners, 7", q)
	}
}

func TestNumbersOfContendersAreChecked(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"2,3": "[2 3]", "7": "[7]", "": "refused", "0": "refused", "2,x": "refused", "-1": "refused",
	} {
		var s settings
		got := "refused"
		if err := s.setContenders(list); err == nil {
			got = fmt.Sprint(s.contenders)
		}
		if got != want {
			t.Errorf("contenders %q: got %s, want %s", list, got, want)
		}
	}
}
