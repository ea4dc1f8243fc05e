package search

import "slices"

// Trace returns the steps of a shortest run to the broken state, or nothing if there is none.
func (sp *Space[S]) Trace() []string { return sp.traceTo(sp.broken) }

// traceTo returns the labels of the steps by which the search came to state i.
//
// They are made here, for one run, and not during the search, which would spend most of its time
// on text nobody reads. And the run is taken once more from its beginning without ever sorting,
// so that a node keeps its name from the first line to the last.
func (sp *Space[S]) traceTo(i int32) []string {
	if i == none {
		return nil
	}
	var path []int32
	for ; i != none; i = sp.parent[i] {
		path = append(path, i)
	}
	slices.Reverse(path)

	s := sp.start(path[0])
	var labels []string
	for _, to := range path[1:] {
		var label string
		s, label = sp.step(s, to)
		labels = append(labels, label)
	}
	return labels
}

// start returns the unsorted form of an initial state.
func (sp *Space[S]) start(i int32) S {
	for _, s := range sp.model.Initial() {
		sp.model.Settle(&s)
		if sp.sorted(s) == *sp.states.at(i) {
			return s
		}
	}
	panic("search: the run does not begin in an initial state")
}

// step takes the first step from s that leads to state to, and returns where it leads, unsorted,
// with its label.
func (sp *Space[S]) step(s S, to int32) (S, string) {
	steps := Steps[S]{named: true}
	sp.model.Next(s, &steps)
	for n, next := range steps.next {
		sp.model.Settle(&next)
		if sp.sorted(next) == *sp.states.at(to) {
			return next, steps.labels[n]
		}
	}
	panic("search: Next depends on more than what Sort keeps")
}

func (sp *Space[S]) sorted(s S) S {
	sp.model.Sort(&s)
	return s
}
