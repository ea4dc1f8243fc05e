// Package search explores every run of a small transition system, breadth first, within a bound
// on the number of states.
//
// It answers two questions about a [Model]. Safety: is there a run to a state that the model calls
// broken? Breadth first, so the run shown is a shortest one. Liveness: is there a state from which
// no run without further faults leads to a goal any more? That takes the finished graph, walked
// backwards from the goal.
//
// A search that ends before its bound has seen all runs: what it did not find does not exist
// within the bounds of the model. States are comparable structs, and a model keeps them small,
// free of pointers, and in a normal form: the fewer ways there are to write down the same
// situation, the fewer states there are.
//
// In reading order: model.go (what a model is), search.go (the search), seen.go (the states met so
// far), trace.go (runs as text), reach.go (liveness), report.go (what a check came to).
package search
