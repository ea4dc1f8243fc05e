// Package mutants proves that the tests bite: it takes one rule of the engine away at a time and
// runs the test that has to notice.
//
// A mutant is a text in one source file and what stands there instead. It is built with go's
// -overlay, so that nothing in the tree changes and the product has no seams for it; scripts that
// are embedded are replaced in the same way. A mutant that does not compile proves nothing and is
// reported as a fault of the table, as is one whose text is not found exactly once.
//
// Limits. A mutant that survives shows a missing test; that all are caught shows no more than that
// these rules are tested.
//
// Files in reading order: table.go, mutant.go, run.go, cmd/mutants.
package mutants
