package search

import (
	"slices"
	"testing"
)

// jugs is the puzzle of two jugs: to measure out want litres with jugs of 3 and 5.
type jugs struct{ want uint8 }

type jugState struct{ small, large uint8 }

func (jugs) Initial() []jugState { return []jugState{{}} }

func (j jugs) Next(s jugState, steps *Steps[jugState]) {
	steps.Add(jugState{3, s.large}, "fill the jug of %d", 3)
	steps.Add(jugState{s.small, 5}, "fill the jug of %d", 5)
	steps.Add(jugState{0, s.large}, "empty the jug of %d", 3)
	steps.Add(jugState{s.small, 0}, "empty the jug of %d", 5)
	pour := min(s.small, 5-s.large)
	steps.Add(jugState{s.small - pour, s.large + pour}, "pour into the jug of 5")
	pour = min(s.large, 3-s.small)
	steps.Add(jugState{s.small + pour, s.large - pour}, "pour into the jug of 3")
}

func (jugs) Settle(*jugState) {}
func (jugs) Sort(*jugState)   {}

func (j jugs) Broken(s jugState) string {
	if s.large == j.want {
		return "measured"
	}
	return ""
}

func TestRunFindsAShortestTrace(t *testing.T) {
	t.Parallel()
	sp := Run(jugs{want: 4}, 1000, false)
	want := []string{
		"fill the jug of 5", "pour into the jug of 3", "empty the jug of 3",
		"pour into the jug of 3", "fill the jug of 5", "pour into the jug of 3",
	}
	if got := sp.Trace(); sp.Violation != "measured" || !slices.Equal(got, want) {
		t.Errorf("violation %q after %q, want one after %q", sp.Violation, got, want)
	}
	if sp.Exhausted {
		t.Error("a search that stopped at a violation says that it has seen everything")
	}
}

func TestRunSeesEveryStateOnce(t *testing.T) {
	t.Parallel()
	// Of the 24 pairs those are reachable in which one jug is empty or full.
	sp := Run(jugs{want: 9}, 1000, false)
	if sp.Len() != 16 || !sp.Exhausted || sp.Violation != "" {
		t.Errorf("%d states, exhausted %t, violation %q; want 16, true, none",
			sp.Len(), sp.Exhausted, sp.Violation)
	}
}

func TestRunStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	if sp := Run(jugs{want: 9}, 5, false); sp.Exhausted || sp.Len() > 10 {
		t.Errorf("%d states, exhausted %t; want it cut short soon after 5", sp.Len(), sp.Exhausted)
	}
}

// fork goes from 0 to 1 or, by a fault, to 2; from 1 to the goal 3; from 2 to 4 and no further.
type fork struct{}

func (fork) Initial() []uint8    { return []uint8{0} }
func (fork) Settle(*uint8)       {}
func (fork) Sort(*uint8)         {}
func (fork) Broken(uint8) string { return "" }

func (fork) Next(s uint8, steps *Steps[uint8]) {
	switch s {
	case 0:
		steps.Add(1, "onwards")
		steps.Fault(2, "astray")
	case 1:
		steps.Add(3, "home")
	case 2:
		steps.Add(4, "deeper")
	case 4:
		steps.Fault(3, "a miracle")
	}
}

func TestStuckDoesNotCountOnFaults(t *testing.T) {
	t.Parallel()
	atHome := func(s uint8) bool { return s == 3 }
	got := slices.Collect(Run(fork{}, 10, true).Stuck(atHome))
	if len(got) != 2 || got[0].State != 2 || got[0].End || got[1].State != 4 || !got[1].End {
		t.Fatalf("stuck: %+v; want 2, and 4 as an end", got)
	}
	if trace := got[1].Trace(); !slices.Equal(trace, []string{"astray", "deeper"}) {
		t.Errorf("trace to the dead end: %q", trace)
	}
}

func TestStuckRefusesAPartialSearch(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("liveness of a search without its steps was answered")
		}
	}()
	Run(fork{}, 10, false).Stuck(func(uint8) bool { return false })
}

// lamps is a row of three lamps, each of which can be lit; any row with as many lit is the same.
type lamps struct{}

func (lamps) Initial() [][3]bool { return [][3]bool{{}} }
func (lamps) Settle(*[3]bool)    {}

func (lamps) Next(s [3]bool, steps *Steps[[3]bool]) {
	for i := range s {
		if t := s; !s[i] {
			t[i] = true
			steps.Add(t, "light lamp %d", i)
		}
	}
}

func (lamps) Sort(s *[3]bool) {
	slices.SortFunc(s[:], func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return 1
		}
		return -1
	})
}

func (lamps) Broken(s [3]bool) string {
	if s[0] && s[1] && s[2] {
		return "all lit"
	}
	return ""
}

func TestTraceKeepsNamesThoughStatesAreSorted(t *testing.T) {
	t.Parallel()
	sp := Run(lamps{}, 100, false)
	if sp.Len() != 4 {
		t.Errorf("%d states, want 4: rows with as many lamps lit are one", sp.Len())
	}
	want := []string{"light lamp 0", "light lamp 1", "light lamp 2"}
	if got := sp.Trace(); !slices.Equal(got, want) {
		t.Errorf("trace %q, want %q", got, want)
	}
}
