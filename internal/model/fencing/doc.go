// Package fencing models the fencing token: it grows with every later holder.
//
// Three nodes with a register each; clients that propose a number, count the answers, raise the
// register where the nodes disagree, and may plant. The nodes' clocks show the true time, the
// clients' are off by what the bounds say. A validity may end at any moment, so that "held" and
// "not yet released" need no clock; that a node without memory stays away until the locks it may
// have forgotten are over is taken from package exclusion. The package checks findings F1 (a grant
// goes past the register), F2 (a proposal is clamped to the node's time, and a node that lost its
// register starts above all it can have given) and the raise.
//
// In reading order: config.go, state.go, client.go, node.go, faults.go.
package fencing
