// Package embedded runs nodes inside the test's own process: miniredis servers behind real TCP
// on 127.0.0.1, for tests that need Redis' protocol and scripts but no redis-server.
//
// Their clock is the real one: keys expire by themselves, and TIME moves, also in scripts. A key
// never expires before its time has passed since the command that set it was sent; it may live
// on for the time that the node needs to look at it.
//
// Limits. miniredis does not know INFO server and INFO replication, so a node has no identity
// of its memory. It has no persistence: what Restart keeps, it keeps in memory. Each move of the
// clock looks at all keys of a node; with more than 500 of them the clock moves in steps of 2 us
// for each, and a key may then expire early by as much. For more than that, use redisproc.
//
//	client ──TCP──> accept ──> hook: move the clock to now ──> miniredis
//	                                        ^
//	                       ticker ──────────┘ (for whoever looks in from Go)
//
// Files in reading order: start.go, node.go, clock.go.
package embedded
