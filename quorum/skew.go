package quorum

import "time"

// slewRate is how fast a clock may be corrected without a step: 500 ppm, the limit of adjtime and
// of NTP daemons.
const slewRate = 500e-6

// maxStep is the most that a clock may step unnoticed.
const maxStep = 100 * time.Millisecond

// A skew is what is known of how far a node's wall clock is ahead of our monotonic clock: it lies
// between least and most. A reply says so with an uncertainty of its round trip.
type skew struct {
	known       bool
	least, most time.Duration
	at          time.Duration // our monotonic clock
	own         time.Duration // our wall clock minus our monotonic clock, then
}

// A sighting is one reading of a node's clock.
type sighting struct {
	node           time.Duration // its wall clock
	sent, received time.Duration // our monotonic clock
	own            time.Duration // our wall clock minus our monotonic clock
}

// next takes in a sighting. It returns what is known now, and by how much the node's clock has
// stepped in between: 0 as long as the difference can be explained by round trips, slewing, and
// steps below limit. A step begins a new knowledge.
func (s skew) next(see sighting, limit time.Duration) (now skew, step time.Duration) {
	now = skew{known: true, at: see.received, own: see.own,
		least: see.node - see.received, most: see.node - see.sent}
	if !s.known || see.received < s.at {
		return now, 0
	}
	slew := time.Duration(float64(see.received-s.at) * slewRate)
	least, most := s.least-slew, s.most+slew
	switch {
	case now.least > most:
		step = now.least - most
	case now.most < least:
		step = now.most - least
	default:
		// Both hold: the narrower of each side.
		now.least, now.most = max(now.least, least), min(now.most, most)
	}
	if step.Abs() <= limit {
		return now, 0
	}
	return now, step
}

// middle is the best guess.
func (s skew) middle() time.Duration { return s.least + (s.most-s.least)/2 }

// stepLimit is the step that the drift allowance of a lock with this TTL covers.
func stepLimit(ttl time.Duration, factor float64) time.Duration {
	return min(Drift(ttl, factor), maxStep)
}

// together counts how many of the steps are like the one given, itself included.
func together(steps []time.Duration, step, limit time.Duration) (n int) {
	for _, other := range steps {
		if other != 0 && (other-step).Abs() <= max(2*limit, step.Abs()/10) {
			n++
		}
	}
	return n
}
