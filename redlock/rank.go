package redlock

import (
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// roundsEach is how many rounds a waiter leaves to each of those before it: the next holder needs
// two, to take and to free, and hears of the release later than it.
const roundsEach = 4

// mostStandBack bounds how long a waiter lets others go first.
const mostStandBack = 250 * time.Millisecond

// A rank is how many of those who wait in other processes a waiter lets go first at the next
// release (ADR 0013). All of them hear of it at the same moment: if they asked at once, they would
// split the votes, and each release would cost tries of all of them.
//
// Nobody gives ranks out. Who is new draws one, who had the lock and waits again stands at the end,
// and at a release all move up past the one who freed: its owner token says which rank it came with.
// Who asked in its rank and met another one that has a rank draws anew. So the ranks of those who go
// on waiting become different, and begin with none before the first, whatever they began with.
type rank struct {
	ahead int
	drawn bool // ahead counts
	come  bool // those before are over: the next try is made in this rank
	met   bool // somebody else had the same
}

// now is the rank that a try is made in: none for the first one of a call, and for those that the
// clock woke.
func (r *rank) now() int {
	if !r.come {
		return quorum.Unranked
	}
	return r.ahead
}

// heard moves up at the release of a lock that was taken in the rank freed. crowd is how many listen,
// the waiter included; had says that the client had the lock before.
func (r *rank) heard(freed, crowd int, had bool) {
	others := max(crowd-1, 0)
	switch {
	case r.drawn && freed != quorum.Unranked:
		r.ahead = max(r.ahead-freed-1, 0)
	case r.drawn: // somebody came in between
	case had && !r.met:
		r.ahead = max(others-1, 0) // who has freed is one of them
	default:
		r.ahead = rand.N(others + 1)
	}
	r.drawn, r.met, r.ahead = true, false, min(r.ahead, others)
}

// standBack is for how long others go first.
func (r *rank) standBack(round time.Duration) time.Duration {
	if r.ahead == 0 || round <= 0 {
		return 0
	}
	each := roundsEach * min(round, mostStandBack)
	if time.Duration(r.ahead) < mostStandBack/each {
		return time.Duration(r.ahead) * each
	}
	return mostStandBack/2 + rand.N(mostStandBack/2)
}

// refused says that a try did not get the lock; alike: somebody else's did that had a rank, or the
// votes are split. It reports whether the rank is to be drawn anew by that.
func (r *rank) refused(alike bool) (met bool) {
	if r.come && alike {
		r.drawn, r.met, met = false, true, true
	}
	r.come = false
	return met
}

// intruded says that one without a rank has the lock, after the time of those before was over. If
// nobody has the first rank, that can go on for as long as such come; so one of two times somebody of
// the crowd takes it.
func (r *rank) intruded(crowd int) {
	if rand.N(2*min(max(crowd, 1), 1<<20)) == 0 {
		r.ahead = 0
	}
}
