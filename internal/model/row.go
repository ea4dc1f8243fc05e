package model

import (
	"fmt"

	"github.com/quorumlock/quorumlock/internal/model/search"
)

// Row is one check of one model: its rules, in force or taken away, its bounds, and what must come
// of it.
type Row struct {
	Name    string // "model/check", unique
	Finding string // of the protocol review; empty: a rule that was never in doubt
	Want    Want

	rules any // the model's Rules, all of them and as they are in this row
	sound any
	check func(limit int) search.Report
}

// Want is what a row must come to.
type Want struct {
	// Violation is what must be found broken; empty: nothing.
	Violation string
	// States is how many there are. Of a search that ends at a violation it says how many had
	// been seen by then, which depends on the order of the steps and is not compared.
	States int
	// Stuck and Ends are how many states there are from which the goal cannot be reached.
	Stuck, Ends int
}

func holds(states int) Want { return Want{States: states} }

func breaks(violation string, states int) Want {
	return Want{Violation: violation, States: states}
}

func stuck(states, stuck, ends int) Want {
	return Want{States: states, Stuck: stuck, Ends: ends}
}

// Run runs the check of r.
func (r Row) Run() search.Report { return r.check(r.Want.limit()) }

// limit leaves room for a search that takes longer than it did: its report then says by how much.
func (w Want) limit() int { return 2*w.States + 1000 }

// Sound reports whether nothing is to be found in a row.
func (w Want) Sound() bool { return w.Violation == "" && w.Stuck == 0 }

// Differs says how a report is not what was wanted; empty if it is.
func (w Want) Differs(r search.Report) string {
	switch {
	case r.Violation != w.Violation:
		return fmt.Sprintf("want %q, got %q", w.Violation, r.Violation)
	case w.Violation != "":
		return ""
	case !r.Exhausted:
		return fmt.Sprintf("not exhausted after %d states, want %d", r.States, w.States)
	case r.States != w.States:
		return fmt.Sprintf("%d states, want %d", r.States, w.States)
	case r.Stuck != w.Stuck || r.Ends != w.Ends:
		return fmt.Sprintf("%d stuck and %d of them ends, want %d and %d",
			r.Stuck, r.Ends, w.Stuck, w.Ends)
	}
	return ""
}

// Outcome describes a report in a few words.
func Outcome(r search.Report) string {
	switch {
	case r.Violation != "":
		return "VIOLATION: " + r.Violation
	case !r.Exhausted:
		return "cut short"
	case r.Stuck > 0:
		return fmt.Sprintf("STUCK: %d, %d of them ends", r.Stuck, r.Ends)
	}
	return "holds"
}
