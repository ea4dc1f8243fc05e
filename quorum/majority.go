package quorum

// Majority is the least number of n nodes of which any two sets meet in a node: n/2 + 1. It is
// counted of the configured nodes, never of the reachable ones.
func Majority(n int) int { return n/2 + 1 }
