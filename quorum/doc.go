// Package quorum decides by majority over independent Redis nodes. It is the engine of package
// redlock, public for readers of the algorithm; applications use redlock.
//
// The decisions are pure functions: votes in, verdict out, no clock, no I/O, no goroutine. The
// driving parts ask the nodes, in batches, and return as soon as the outcome cannot change; answers
// that come later are still dealt with. It promises nothing about time by itself: validity is
// computed from readings that the caller's clock gives.
//
//	attempt, poll     what to ask, and what the answers amount to
//	     |  verdict, standing, hold verdict: pure
//	lane (one a node) batches, deadlines, failing nodes, debts
//	     |
//	Node              go-redis, or a fake in memory
//
// Files in reading order: majority.go, verdict.go, token.go, validity.go, set.go (pure); node.go,
// message.go, engine.go, attempt.go, ballot.go, outcome.go, question.go, poll.go, hold.go, swap.go,
// inspect.go, tick.go, free.go (what is asked); lane.go, flight.go, crew.go, front.go, watch.go, pace.go,
// probe.go, debt.go (how it gets to a node); guard.go, facts.go, admit.go, clockwatch.go, skew.go
// (what a node's word is worth); dial.go, bound.go, redisnode.go, wire.go, redislistener.go, ears.go.
package quorum
