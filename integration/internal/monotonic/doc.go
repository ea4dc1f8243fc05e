// Package monotonic is a clock that all processes of a machine share: what one of them did before
// another can be told by it.
package monotonic
