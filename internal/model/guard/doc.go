// Package guard models the restart guard: a node that forgot a lock gives its vote to nobody else
// until MaxTTL has passed.
//
// One node of the quorum, which may be a pair of servers with fail-over. On it: one lock, which A
// holds or held, and a rival B that asks at any time. The servers restart empty or from a
// snapshot, are flushed, promoted, demoted, cut off, or replaced behind their address. A vote for
// B while A's lock is alive is what must not be: with it, a quorum of such nodes has two holders.
// The package checks findings G1 to G4: what tells a client that memory was lost, which identity
// a memory has, whether a node may skip the wait, and what a pair of servers needs.
//
// In reading order: config.go, state.go, vote.go (asking for the lock), admission.go (coming to
// know the node), faults.go.
package guard
