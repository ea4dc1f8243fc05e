package fakenode

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Functions to give to Faults. Each may be given to several Faults at once.

// Always loses every message.
func Always() bool { return true }

// Next loses the next n messages.
func Next(n int) func() bool {
	var mu sync.Mutex
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		n--
		return n >= 0
	}
}

// Chance loses each message with probability p.
func Chance(seed uint64, p float64) func() bool {
	d := newDice(seed)
	return func() bool { return d.roll() < p }
}

// Fixed delays each message by d.
func Fixed(d time.Duration) func() time.Duration {
	return func() time.Duration { return d }
}

// Jitter delays each message by something from low up to high.
func Jitter(seed uint64, low, high time.Duration) func() time.Duration {
	d := newDice(seed)
	return func() time.Duration { return low + time.Duration(d.roll()*float64(high-low)) }
}

// Repeats executes a message again with probability p, something from low up to high later.
func Repeats(seed uint64, p float64, low, high time.Duration) func() (time.Duration, bool) {
	d := newDice(seed)
	return func() (time.Duration, bool) {
		after := low + time.Duration(d.roll()*float64(high-low))
		return after, d.roll() < p
	}
}

// A dice is a source of numbers that several goroutines may roll.
type dice struct {
	mu     sync.Mutex
	source *rand.Rand
}

func newDice(seed uint64) *dice {
	return &dice{source: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// roll is a number from 0 up to 1.
func (d *dice) roll() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.Float64()
}
