package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A table is what a workload came to: text alone, so that it is printed on a terminal and written
// into the document alike.
type table struct {
	title  string
	about  string // what was measured and how: a paragraph
	header []string
	rows   [][]string
	words  []bool // by column: words, aligned to the left, and not numbers; missing: numbers
}

// add adds a row; what is missing at its end is empty.
func (t *table) add(cells ...string) {
	row := make([]string, len(t.header))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

func (t *table) isWords(column int) bool { return column < len(t.words) && t.words[column] }

// text is the table for a terminal.
func (t *table) text() string {
	lines := append([][]string{t.header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", t.title, wrap(t.about, 96))
	for _, line := range lines {
		cells := make([]string, len(line))
		for i, cell := range line {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if cells[i] = gap + cell; t.isWords(i) {
				cells[i] = cell + gap
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "  "), " ") + "\n")
	}
	return b.String()
}

// print writes tables for a terminal, an empty line after each.
func print(out io.Writer, tables []table) error {
	for _, t := range tables {
		if _, err := fmt.Fprintln(out, t.text()); err != nil {
			return err
		}
	}
	return nil
}

// markdown is the table as a section of the document.
func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", t.title, wrap(t.about, 96))
	marks := make([]string, len(t.header))
	for i := range marks {
		if marks[i] = "---:"; t.isWords(i) {
			marks[i] = "---"
		}
	}
	for _, line := range append([][]string{t.header, marks}, t.rows...) {
		for _, cell := range line {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// wrap breaks a paragraph into lines of no more than width bytes, words permitting.
func wrap(text string, width int) string {
	var b strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case used == 0:
		case used+1+len(word) > width:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}
