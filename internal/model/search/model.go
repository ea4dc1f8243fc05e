package search

import "fmt"

// Model is a transition system with a claim about its states.
type Model[S comparable] interface {
	// Initial returns the states a run may begin in.
	Initial() []S
	// Next adds to steps every step that can be taken in s. What it adds, and in which order,
	// depends on s alone: a trace is found by calling it again.
	Next(s S, steps *Steps[S])
	// Settle brings s, fresh from a step, to rest: what ends by itself ends, and what cannot
	// matter any more is forgotten.
	Settle(s *S)
	// Sort turns s into the one that stands for all states which differ from it only in names,
	// mostly in which node is which. Next must not care which of them it is given.
	Sort(s *S)
	// Broken says what is wrong in s; empty when nothing is.
	Broken(s S) string
}

// Steps collects what can happen in one state. It is reused from state to state.
type Steps[S comparable] struct {
	next   []S
	fault  []bool
	labels []string
	named  bool // labels are wanted: only while a trace is put together
}

// Add adds a step of the protocol itself, a message that arrives, or time that passes. The format
// says in words what happens.
func (st *Steps[S]) Add(next S, format string, args ...any) {
	st.add(next, false)
	if st.named {
		st.labels = append(st.labels, fmt.Sprintf(format, args...))
	}
}

// Fault adds a step that may happen and need not: a crash, a restart, a lost message. Liveness
// never counts on it.
func (st *Steps[S]) Fault(next S, format string, args ...any) {
	st.add(next, true)
	if st.named {
		st.labels = append(st.labels, fmt.Sprintf(format, args...))
	}
}

func (st *Steps[S]) add(next S, fault bool) {
	st.next = append(st.next, next)
	st.fault = append(st.fault, fault)
}

func (st *Steps[S]) reset() {
	st.next, st.fault, st.labels = st.next[:0], st.fault[:0], st.labels[:0]
}
