package quorum

import "math/bits"

// A Set is a set of nodes by index.
type Set uint64

// MaxNodes is the most nodes that an engine can have.
const MaxNodes = 64

// Has reports whether node i is in the set.
func (s Set) Has(i int) bool { return s&(1<<i) != 0 }

// Len is how many nodes are in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }
