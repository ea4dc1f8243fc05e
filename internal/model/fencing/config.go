package fencing

import "github.com/quorumlock/quorumlock/internal/model/search"

const (
	nodes       = 3
	quorum      = nodes/2 + 1
	maxAttempts = 3
)

// Rules are the rules of the protocol; each can be taken away alone.
type Rules struct {
	// GrantPastRegister: a new grant leaves the register higher than it was, not just as high
	// (F1).
	GrantPastRegister bool
	// Clamp: a proposal counts only up to half of MaxTTL beyond the node's own time (F2).
	Clamp bool
	// Floor: the register of a node that lost its memory starts at the time from which the
	// node votes again (F2).
	Floor bool
	// RaiseFirst: a token is a number that a majority has: answered by one, or raised on one.
	// Without it the largest answer is the token, wherever it came from.
	RaiseFirst bool
	// RaiseOwnKey: a node takes part in a raise only while the key there is still the
	// attempt's own.
	RaiseOwnKey bool
}

// Sound returns the rules of the protocol, all in force.
func Sound() Rules {
	return Rules{
		GrantPastRegister: true,
		Clamp:             true,
		Floor:             true,
		RaiseFirst:        true,
		RaiseOwnKey:       true,
	}
}

// Config is one check: the rules, and the bounds within which all runs are looked at.
type Config struct {
	Rules Rules
	// Attempts is how many clients there are, with one attempt each.
	Attempts int
	// Behind and Ahead are how far a client's clock may be off when it proposes.
	Behind, Ahead uint8
	// FirstTime and LastTime are where the true time starts and stops.
	FirstTime, LastTime uint8
	// MaxTTL is how long a node waits after a loss of memory, and the longest a round lasts.
	MaxTTL uint8
	// Plants lets a holder plant its key on free nodes. Lapses is how often its key on a third
	// node may end while two others are kept up.
	Plants bool
	Lapses uint8
	// PlantToken: a plant proposes the token, else nothing. The rules hold either way (F3): the
	// clamp and the floor already see to it. The protocol does it as a second line.
	PlantToken bool
	// Duplicates is how many acquires may arrive twice, the first reply lost or not.
	Duplicates uint8
	// Restarts is how many times a node may restart empty.
	Restarts uint8
}

// Check explores the model within the bounds of c and up to limit states.
func Check(c Config, limit int) search.Report {
	return search.Run[State](&model{c}, limit, false).Report()
}
