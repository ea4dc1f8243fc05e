package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// A printer writes for people, or JSON, one object a line. It keeps the first error.
type printer struct {
	w    io.Writer
	json bool
	tabs *tabwriter.Writer
	err  error
}

func (p *printer) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

// text is for people only.
func (p *printer) text(format string, args ...any) {
	if !p.json {
		_, err := fmt.Fprintf(p.w, format, args...)
		p.note(err)
	}
}

// object is for programs only.
func (p *printer) object(v any) {
	if p.json {
		p.note(json.NewEncoder(p.w).Encode(v))
	}
}

// table begins one with these headings; flush ends it.
func (p *printer) table(headings ...string) {
	p.tabs = tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	p.cells(headings...)
}

// cells are a line of the table.
func (p *printer) cells(cells ...string) {
	if p.json {
		return
	}
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	_, err := fmt.Fprintln(p.tabs, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	p.note(err)
}

// row is a line of the table, or an object.
func (p *printer) row(object any, cells ...string) {
	p.object(object)
	p.cells(cells...)
}

func (p *printer) flush() {
	if !p.json {
		p.note(p.tabs.Flush())
	}
}

// printable is text that cannot do anything to a terminal or a table: what nodes and rivals say of
// themselves is not ours.
func printable(text string) string {
	strange := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(text) && !strings.ContainsFunc(text, strange) {
		return text
	}
	return strconv.Quote(text)
}

// ms is a duration in JSON: milliseconds.
type ms time.Duration

// MarshalJSON writes it with three decimals at the most.
func (d ms) MarshalJSON() ([]byte, error) {
	value := float64(time.Duration(d).Round(time.Microsecond)) / float64(time.Millisecond)
	return strconv.AppendFloat(nil, value, 'f', -1, 64), nil
}

func (d ms) span() time.Duration { return time.Duration(d) }

// remaining is what a key has left, as text.
func remaining(holder string, left time.Duration) string {
	switch {
	case holder == "":
		return "-"
	case left < 0:
		return "no end"
	case left >= time.Second:
		return left.Round(100 * time.Millisecond).String()
	}
	return left.Round(time.Millisecond).String()
}

func number(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func contains(all []string, one string) bool { return slices.Contains(all, one) }
