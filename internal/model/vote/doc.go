// Package vote models contention: several contenders ask for one lock at once and split the votes.
//
// Three or five nodes; contenders that ask them all, see who has how many, and stay, ask again or
// yield. There is no clock: an answer may come at any time, an acquire may arrive late, a reply
// may be lost, a contender may die, and a key stays where it is until its contender releases it,
// so that "the holder died" shows as what it is, a lock that nobody gets. Never two winners; and a
// winner comes about, whatever the order of the messages. The package checks findings V1 to V4.
//
// In reading order: config.go, state.go, contender.go (what a contender does), node.go (what a
// node does with a message), verdict.go.
package vote
