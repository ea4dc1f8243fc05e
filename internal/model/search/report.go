package search

// Report is what came of checking a model.
type Report struct {
	States    int
	Exhausted bool   // all states were seen
	Violation string // what was broken; empty: nothing
	// Stuck counts the states that a model with a liveness claim holds against itself: which of
	// those that [Space.Stuck] yields, is up to the model. Ends counts those of them in which
	// nothing at all can happen any more.
	Stuck, Ends int
	// Trace is a shortest run to the violation; else to the first end that is counted, else to
	// the first state that is.
	Trace []string
}

// Report sums up a search without a liveness claim.
func (sp *Space[S]) Report() Report {
	return Report{
		States:    sp.Len(),
		Exhausted: sp.Exhausted,
		Violation: sp.Violation,
		Trace:     sp.Trace(),
	}
}

// ReportStuck sums up a search together with its liveness claim: of the states from which goal
// cannot be reached, those that counts picks. A search that was cut short, or has found a
// violation, makes no claim.
func (sp *Space[S]) ReportStuck(goal func(S) bool, counts func(Stuck[S]) bool) Report {
	r := sp.Report()
	if !sp.Exhausted {
		return r
	}
	for st := range sp.Stuck(goal) {
		if !counts(st) {
			continue
		}
		if r.Stuck == 0 || st.End && r.Ends == 0 {
			r.Trace = st.Trace()
		}
		r.Stuck++
		if st.End {
			r.Ends++
		}
	}
	return r
}
