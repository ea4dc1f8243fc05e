package vote

import "github.com/quorumlock/quorumlock/internal/model/search"

const (
	maxNodes    = 5
	maxAttempts = 6
)

// Rules are the rules of the protocol; each can be taken away alone.
type Rules struct {
	// Majority: a contender has won with a majority of the nodes. Without it half of them,
	// rounded down, will do.
	Majority bool
	// LeaderStays: the contender with the most nodes stays and asks again for the others.
	// Without it whoever has no majority yields.
	LeaderStays bool
	// BreakTies: of contenders with as many nodes one stays, the one with the smallest token.
	// Without it all of them yield.
	BreakTies bool
	// Reevaluate: who stays counts anew after each answer. Without it a contender that once
	// stayed never yields (V4).
	Reevaluate bool
	// AskSilent: nodes that did not answer are asked once more before yielding (V2).
	AskSilent bool
	// FreshToken: a new attempt has a new token (V3).
	FreshToken bool
}

// Sound returns the rules of the protocol, all in force.
func Sound() Rules {
	return Rules{
		Majority:    true,
		LeaderStays: true,
		BreakTies:   true,
		Reevaluate:  true,
		AskSilent:   true,
		FreshToken:  true,
	}
}

// Config is one check: the rules, and the bounds within which all runs are looked at.
type Config struct {
	Rules Rules
	// Nodes is 3 or 5, of which DeadNodes never answer.
	Nodes, DeadNodes int
	// Contenders is how many there are. Each starts once, at any time.
	Contenders int
	// AskAnew lets each contender that has yielded make one new attempt, when its releases are
	// through and it sees nobody with a majority.
	AskAnew bool
	// Alone cuts the first contender off from all nodes but one.
	Alone bool
	// Losses is how many replies may be lost, or acquires come late; Crashes is how many
	// contenders may die while they ask.
	Losses, Crashes uint8
}

// Check explores the model within the bounds of c and up to limit states. The states counted as
// stuck are those from which nobody can win any more, though somebody lives.
func Check(c Config, limit int) search.Report {
	m := newModel(c)
	return search.Run[State](m, limit, true).ReportStuck(m.hasWinner, m.somebodyLives)
}
