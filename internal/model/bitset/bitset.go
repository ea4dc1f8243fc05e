// Package bitset is a set of up to eight attempts, small enough to lie in the state of a model.
package bitset

// Set holds numbers from 0 to 7.
type Set uint8

// Of returns the set of k alone.
func Of(k int) Set { return 1 << k }

// Has reports whether k is in the set.
func (s Set) Has(k int) bool { return s&Of(k) != 0 }

// Add puts k into the set.
func (s *Set) Add(k int) { *s |= Of(k) }

// Remove takes k out of the set.
func (s *Set) Remove(k int) { *s &^= Of(k) }
