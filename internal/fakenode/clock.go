package fakenode

import "time"

// A wallClock is a machine's clock: the system's, set wrong and perhaps too fast or too slow. In a
// bubble of testing/synctest the system's is the bubble's.
type wallClock struct {
	offset time.Duration
	rate   float64   // seconds gained per second
	from   time.Time // since when, on the system's clock
}

// now is without a monotonic reading: a node knows wall time only.
func (c *wallClock) now() time.Time {
	system := time.Now()
	gained := time.Duration(float64(system.Sub(c.from)) * c.rate)
	return system.Add(c.offset + gained).Round(0)
}

// setRate keeps what was gained until now.
func (c *wallClock) setRate(rate float64) {
	system := time.Now()
	c.offset += time.Duration(float64(system.Sub(c.from)) * c.rate)
	c.rate, c.from = rate, system
}

// Now reads the node's clock.
func (n *Node) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clock.now()
}

// StepClock puts the node's clock forward by d, or back. Keys end by it.
func (n *Node) StepClock(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock.offset += d
}

// Drift makes the node's clock gain so many seconds per second from now on: 0.01 is 1 % too fast,
// a negative rate too slow, 0 right again.
func (n *Node) Drift(rate float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock.setRate(rate)
}
