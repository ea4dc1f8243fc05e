package tick

import "github.com/quorumlock/quorumlock/internal/model/search"

const (
	nodes       = 3
	quorum      = nodes/2 + 1
	maxAttempts = 4
	maxInstants = 2
)

// Rules are the rules of the protocol; each can be taken away alone.
type Rules struct {
	// CommitFirst: an instant is run once a majority has committed it. Without it one node will
	// do.
	CommitFirst bool
	// CommitOwnsKey: a node commits only for the claimer whose claim key lies there.
	CommitOwnsKey bool
	// Ballot: a claimer that has shown that nobody can have run the instant commits over the
	// marks of others; the fencing token of its claim decides which mark is newer (T2). Without
	// it no node takes a second owner's mark, and only marks on a majority hold a claimer back.
	Ballot bool
	// PerOwner: marks of different claimers do not add up: none of them has a majority by the
	// others' marks (R2).
	PerOwner bool
	// ReadNeedsGrant: a node counts as read, without a mark, only if it granted the claim (R1).
	ReadNeedsGrant bool
	// Memory is what a node whose memory began after the instant may still do (T1).
	Memory Memory
	// NotBeforeInstant: no node votes for an instant that has not come (T4).
	NotBeforeInstant bool
	// KeepMarks: a node keeps a mark for each instant, not only the newest (T5).
	KeepMarks bool
	// RunWhileValid: a claimer that has its majority of commits runs only if its claim is still
	// valid then. It is needed as soon as an acquire can reach a node after the claim was won:
	// see LateGrants.
	RunWhileValid bool
	// OwnAttempts: marks of a claimer's own earlier attempt, which it knows not to have run,
	// do not count (T3).
	OwnAttempts bool
}

// Memory is a way to treat a node whose memory began after the instant that is claimed: it may
// have forgotten a mark.
type Memory uint8

// The protocol uses NotRead; NoVote is sound too.
const (
	NotRead  Memory = iota // it votes for the claim and takes commits, but does not count as read
	NoVote                 // it refuses the claim
	Believed               // it is believed
)

// Sound returns the rules of the protocol, all in force.
func Sound() Rules {
	return Rules{
		CommitFirst:      true,
		CommitOwnsKey:    true,
		Ballot:           true,
		PerOwner:         true,
		ReadNeedsGrant:   true,
		NotBeforeInstant: true,
		KeepMarks:        true,
		RunWhileValid:    true,
		OwnAttempts:      true,
	}
}

// Config is one check: the rules, and the bounds within which all runs are looked at.
type Config struct {
	Rules Rules
	// Attempts names the replica of each claim: "AAB" is two by A, one after the other, and one
	// by B.
	Attempts string
	// Instants is how many instants come. The run begins when the first has come or, if Early,
	// before it.
	Instants uint8
	Early    bool
	// InTurn lets a replica begin only when the one before it is through, or dead.
	InTurn bool
	// LateGrants lets the acquires of a claim arrive until its commits are settled, not only
	// until it is won. Without that a late one counts as lost.
	LateGrants bool
	// Crashes of replicas, Restarts of nodes, nodes going Down for good, and Losses of replies
	// are how many of each may happen.
	Crashes, Restarts, Down, Losses uint8
}

// Check explores the model within the bounds of c and up to limit states. The states counted as
// stuck are those from which the first instant can never be run, though it should be.
func Check(c Config, limit int) search.Report {
	m := newModel(c)
	return search.Run[State](m, limit, true).ReportStuck(m.hasRun, m.wedged)
}
