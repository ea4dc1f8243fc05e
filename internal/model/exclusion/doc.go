// Package exclusion models the promise of the lock: never two valid holders at once.
//
// Three nodes; clients whose attempts acquire, extend, plant and unlock; one clock for all, in
// whole units, so that a validity ends exactly with the oldest key it rests on (drift comes on
// top, and is not modelled). A message to a node may arrive at any later moment and in any order.
// The nodes may restart, empty or from a snapshot. The package checks the rules of finding P1
// (a plant is judged like an acquire), P2 (a fresh owner token for every attempt) and P4 (an
// extend never shortens), and the elementary ones: majority, owner token, validity from the
// first byte, the restart guard.
//
// In reading order: config.go (the rules, and the bounds of a check), state.go (a state and its
// normal form), client.go (what a client does), node.go (what a node does with a message),
// faults.go (restarts).
package exclusion
