package exclusion

import "github.com/quorumlock/quorumlock/internal/model/search"

const (
	nodes       = 3
	maxAttempts = 4
)

// Rules are the rules of the protocol; each can be taken away alone.
type Rules struct {
	// Majority: a round is won, and a lock extended, with a majority of the nodes. Without it
	// half of them, rounded down, will do.
	Majority bool
	// ReleaseOwnKey: a release removes the key only if it is the attempt's own.
	ReleaseOwnKey bool
	// ExtendOwnKey: an extend counts only nodes that still held the attempt's key. Without it
	// every answer counts.
	ExtendOwnKey bool
	// ExtendNeverShortens: an extend for less time than is left changes nothing (P4).
	ExtendNeverShortens bool
	// FromFirstByte: a validity counts from the moment the round was sent, not from the moment
	// it was won.
	FromFirstByte bool
	// FreshToken: every attempt has an owner token of its own, not one per client (P2).
	FreshToken bool
	// Guard: a node that lost its memory grants nobody until MaxTTL has passed.
	Guard bool
	// GuardPlants: nor does it accept a plant (P1).
	GuardPlants bool
}

// Sound returns the rules of the protocol, all in force.
func Sound() Rules {
	return Rules{
		Majority:            true,
		ReleaseOwnKey:       true,
		ExtendOwnKey:        true,
		ExtendNeverShortens: true,
		FromFirstByte:       true,
		FreshToken:          true,
		Guard:               true,
		GuardPlants:         true,
	}
}

// Config is one check: the rules, and the bounds within which all runs are looked at.
type Config struct {
	Rules Rules
	// Attempts names the client of each attempt: "AAB" is two by A, one after the other, and
	// one by B.
	Attempts string
	// Extends is how often the first attempt may extend. The others do not.
	Extends uint8
	// TTL is what an acquire asks for, ExtendTTL what an extend does (zero: the same), and
	// MaxTTL how long a node waits after a loss of memory.
	TTL, ExtendTTL, MaxTTL uint8
	// RoundBound is how long after its start a round may be won. Then it is given up.
	RoundBound uint8
	// LastTime is where the clock stops.
	LastTime uint8
	// HoldsAtStart begins with the first attempt holding the lock, once on two nodes and once
	// on all three, instead of with nothing.
	HoldsAtStart bool
	// Unlocks lets a holder unlock at any time, GivesUp lets a contender give up at any time.
	Unlocks, GivesUp bool
	// LostReplies lets the reply to a granted acquire be lost.
	LostReplies bool
	// Duplicates is how many acquires may arrive twice.
	Duplicates uint8
	// Restarts and Snapshots are how many of each may happen, on any node.
	Restarts, Snapshots uint8
}

// Check explores the model within the bounds of c and up to limit states.
func Check(c Config, limit int) search.Report {
	return search.Run[State](newModel(c), limit, false).Report()
}
