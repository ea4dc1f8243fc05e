package search

// Space is the part of a model that a search has seen.
type Space[S comparable] struct {
	Violation string // what is broken in the first broken state; empty: nothing
	Exhausted bool   // every state there is has been seen

	model  Model[S]
	states *seen[S] // in the order found, so in the order of their distance
	parent []int32  // the state each was found from; none for an initial one
	broken int32    // the first broken state, or none
	edges  []edge   // steps that are not faults; kept only for liveness
}

type edge struct{ from, to int32 }

// none stands for no state.
const none int32 = -1

// Run explores m until it has found a broken state, seen all states, or found more than limit. It
// keeps the steps between states if keepSteps is set: [Space.Stuck] needs them.
func Run[S comparable](m Model[S], limit int, keepSteps bool) *Space[S] {
	sp := &Space[S]{model: m, states: newSeen[S](), broken: none}
	for _, s := range m.Initial() {
		m.Settle(&s)
		m.Sort(&s)
		sp.visit(&s, none)
	}
	var steps Steps[S]
	for i := int32(0); int(i) < sp.states.n; i++ {
		if sp.broken != none || sp.states.n > limit {
			return sp
		}
		steps.reset()
		m.Next(*sp.states.at(i), &steps)
		for n := range steps.next {
			next := &steps.next[n]
			m.Settle(next)
			m.Sort(next)
			to := sp.visit(next, i)
			if keepSteps && !steps.fault[n] && to != i {
				sp.edges = append(sp.edges, edge{i, to})
			}
		}
	}
	sp.Exhausted = sp.broken == none
	return sp
}

// visit returns the number of s, which is new if it was not met before. A new state is judged at
// once, not when its turn to be explored comes: that would cost a whole layer more.
func (sp *Space[S]) visit(s *S, from int32) int32 {
	i, isNew := sp.states.number(s)
	if !isNew {
		return i
	}
	sp.parent = append(sp.parent, from)
	if sp.broken == none {
		if sp.Violation = sp.model.Broken(*s); sp.Violation != "" {
			sp.broken = i
		}
	}
	return i
}

// Len returns how many states were found.
func (sp *Space[S]) Len() int { return sp.states.n }
