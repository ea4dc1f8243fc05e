// Package checks holds tests about the repository itself: which package may import which.
//
// Files in reading order: rules_test.go (the rules, and tests that they bite), tree_test.go (the
// real tree, as the go command sees it).
package checks
