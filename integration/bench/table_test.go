package main

import (
	"strings"
	"testing"
)

func sample() table {
	t := table{title: "Things", about: "what they are", header: []string{"name", "count"},
		words: []bool{true}}
	t.add("ünder", "5")
	t.add("a|b", "12345678")
	t.add("none")
	return t
}

func TestATableForATerminalIsAligned(t *testing.T) {
	t.Parallel()
	s := sample()
	want := `Things
what they are

name      count
ünder         5
a|b    12345678
none
`
	if got := s.text(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestATableInMarkdown(t *testing.T) {
	t.Parallel()
	s := sample()
	want := `## Things

what they are

| name | count |
| --- | ---: |
| ünder | 5 |
| a\|b | 12345678 |
| none |  |
`
	if got := s.markdown(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestLinesAreWrappedBetweenWords(t *testing.T) {
	t.Parallel()
	got := wrap("one two  three anotherlongword five", 9)
	if want := "one two\nthree\nanotherlongword\nfive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for line := range strings.Lines(wrap(strings.Repeat("word ", 100), 20)) {
		if len(strings.TrimRight(line, "\n")) > 20 {
			t.Errorf("%q is too long", line)
		}
	}
}
