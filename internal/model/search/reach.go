package search

import "iter"

// Stuck is a state from which no run without further faults leads to the goal.
type Stuck[S comparable] struct {
	State S
	End   bool // nothing at all can happen any more, but faults

	sp    *Space[S]
	index int32
}

// Trace returns the steps of a shortest run to the state.
func (st Stuck[S]) Trace() []string { return st.sp.traceTo(st.index) }

// Stuck yields each state from which goal cannot be reached, the nearest first. Only an exhausted
// search that kept its steps can tell; of others it panics.
//
// A state that is not stuck may still not come to the goal: it can go round in a circle, or take
// a turn after which it is stuck. "There is a way" is what is asked, as nodes and contenders are
// not assumed to be fair; messages that wait arrive in some run.
func (sp *Space[S]) Stuck(goal func(S) bool) iter.Seq[Stuck[S]] {
	if !sp.Exhausted || sp.edges == nil && sp.Len() > 1 {
		panic("search: liveness asked of a search that was cut short or kept no steps")
	}
	return func(yield func(Stuck[S]) bool) {
		canReach := sp.backwards(goal)
		hasStep := make([]bool, sp.Len())
		for _, e := range sp.edges {
			hasStep[e.from] = true
		}
		for i, ok := range canReach {
			if ok {
				continue
			}
			at := int32(i)
			st := Stuck[S]{State: *sp.states.at(at), End: !hasStep[i], sp: sp, index: at}
			if !yield(st) {
				return
			}
		}
	}
}

// backwards marks the states from which a goal can be reached.
func (sp *Space[S]) backwards(goal func(S) bool) []bool {
	into := sp.predecessors()
	marked := make([]bool, sp.Len())
	var todo []int32
	mark := func(i int32) {
		if !marked[i] {
			marked[i] = true
			todo = append(todo, i)
		}
	}
	for i := range int32(sp.Len()) {
		if goal(*sp.states.at(i)) {
			mark(i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range into.of(i) {
			mark(from)
		}
	}
	return marked
}

// predecessors sorts the edges by where they lead, by counting: two flat arrays, since millions of
// small slices would cost several times the memory.
type predecessors struct {
	from  []int32
	begin []int32 // the predecessors of i are from[begin[i]:begin[i+1]]
}

func (p predecessors) of(i int32) []int32 { return p.from[p.begin[i]:p.begin[i+1]] }

func (sp *Space[S]) predecessors() predecessors {
	p := predecessors{
		from:  make([]int32, len(sp.edges)),
		begin: make([]int32, sp.Len()+1),
	}
	for _, e := range sp.edges {
		p.begin[e.to+1]++
	}
	for i := range sp.Len() {
		p.begin[i+1] += p.begin[i]
	}
	fill := append([]int32(nil), p.begin...)
	for _, e := range sp.edges {
		p.from[fill[e.to]] = e.from
		fill[e.to]++
	}
	return p
}
