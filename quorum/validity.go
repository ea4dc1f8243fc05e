package quorum

import "time"

// clockSlack is what the Redlock specification adds to the drift for the resolution of Redis'
// expiry, one millisecond, and for short TTLs, another one.
const clockSlack = 2 * time.Millisecond

// Drift is how much two clocks may go apart within ttl: ttl * factor + 2 ms, after "Distributed
// Locks with Redis", section "The Redlock Algorithm", step 3 and the reference implementation.
func Drift(ttl time.Duration, factor float64) time.Duration {
	return time.Duration(float64(ttl)*factor) + clockSlack
}

// Validity is what is left of a lock when its majority is there: ttl - elapsed - drift. Elapsed
// counts from before the first byte was sent, so that it covers the age of the oldest key.
func Validity(ttl, elapsed time.Duration, factor float64) time.Duration {
	return ttl - max(elapsed, 0) - Drift(ttl, factor)
}
