package search

import "hash/maphash"

// seen numbers states in the order in which they were first met.
//
// A map keyed by state would do, but it holds each state a second time and moves them all whenever
// it grows. This is a hash table of nothing but numbers and hashes, and the states lie in blocks
// that never move: a search of a million states takes half of the time.
type seen[S comparable] struct {
	blocks [][]S
	n      int
	slots  []slot // a power of two, at least twice as many as states
	seed   maphash.Seed
}

// slot is free, or says which state lies there. With the hash beside the number, the state itself
// is seldom looked at in vain, which would cost a cache miss.
type slot struct {
	hash   uint32
	number int32 // and one; 0: free
}

const blockLen = 1 << 12

func newSeen[S comparable]() *seen[S] {
	return &seen[S]{slots: make([]slot, 1<<10), seed: maphash.MakeSeed()}
}

// at returns state number i.
func (sn *seen[S]) at(i int32) *S { return &sn.blocks[i/blockLen][i%blockLen] }

// number returns the number of s, and whether it is new.
func (sn *seen[S]) number(s *S) (i int32, isNew bool) {
	hash := uint32(maphash.Comparable(sn.seed, *s))
	at := sn.probe(hash, func(i int32) bool { return *sn.at(i) == *s })
	if i := sn.slots[at].number; i != 0 {
		return i - 1, false
	}
	if sn.n%blockLen == 0 {
		sn.blocks = append(sn.blocks, make([]S, 0, blockLen))
	}
	last := &sn.blocks[len(sn.blocks)-1]
	*last = append(*last, *s)
	sn.n++
	sn.slots[at] = slot{hash, int32(sn.n)}
	if 2*sn.n > len(sn.slots) {
		sn.grow()
	}
	return int32(sn.n - 1), true
}

// probe returns the place of the state with this hash that is the one looked for, or the free
// place where it belongs.
func (sn *seen[S]) probe(hash uint32, is func(i int32) bool) int {
	mask := len(sn.slots) - 1
	at := int(hash) & mask
	for {
		sl := sn.slots[at]
		if sl.number == 0 || sl.hash == hash && is(sl.number-1) {
			return at
		}
		at = (at + 1) & mask
	}
}

func (sn *seen[S]) grow() {
	old := sn.slots
	sn.slots = make([]slot, 4*len(old))
	for _, sl := range old {
		if sl.number != 0 {
			at := sn.probe(sl.hash, func(int32) bool { return false }) // all are different
			sn.slots[at] = sl
		}
	}
}
