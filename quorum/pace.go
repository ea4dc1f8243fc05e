package quorum

import "time"

// paceWindow is how long the least round trip counts: two windows, the running and the last.
const paceWindow = 5 * time.Second

// A pace is what a lane has learned of its node's distance.
type pace struct {
	least, before time.Duration // the least round trip of this window and of the one before
	windowed      time.Duration // how much of the window has passed, in round trips
	mean          time.Duration // moving average
}

// note takes in one round trip.
func (p *pace) note(trip time.Duration) {
	trip = max(trip, time.Microsecond)
	if p.least == 0 || trip < p.least {
		p.least = trip
	}
	if p.windowed += trip; p.windowed > paceWindow {
		p.before, p.least, p.windowed = p.least, trip, 0
	}
	if p.mean == 0 {
		p.mean = trip
	}
	p.mean += (trip - p.mean) / 8
}

// flights is how many batches should be under way at once: one where the node is near, because a
// second would only make batches smaller, and one more for each millisecond of distance, because
// there requests would wait for a round trip that has nothing to do with them. Measured: one is
// best on loopback, sixteen at 20 ms.
func (p *pace) flights() int {
	return int(min(1+p.distance()/time.Millisecond, maxFlights))
}

// spacing is how far apart flights leave that are under way together. Without it all of them leave
// within a millisecond, with few on board, and what is asked for next waits for the first to land:
// who is answered together asks again together. Measured in turn with and without it, 512 callers at
// 20 ms need a twentieth less time for a lock and its unlock, and a tenth less just after they begin.
func (p *pace) spacing() time.Duration {
	return p.distance() / maxFlights
}

// distance is the least round trip of late.
func (p *pace) distance() time.Duration {
	if p.before > 0 {
		return min(p.least, p.before)
	}
	return p.least
}

// patience is how long a flight may be out before the lane stops waiting for it and lets another
// one go beside it.
func (p *pace) patience(timeout time.Duration) time.Duration {
	return min(max(4*p.mean, 2*time.Millisecond), max(timeout/4, time.Millisecond))
}
