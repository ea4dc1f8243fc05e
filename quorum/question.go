package quorum

import "github.com/quorumlock/quorumlock/internal/script"

// A question is what all polls of one kind have in common: how to read an answer, and whether after
// these no later one matters, with so many nodes in all.
type question struct {
	parse  func(string) (script.Reply, error)
	enough func(t Tally, nodes int) bool
}

// The questions of a held lock, of a tick, and of operators.
var (
	askExtend  = &question{script.ParseExtend, holdDecided}
	askBack    = &question{script.ParseExtend, never}
	askRaise   = &question{script.ParseRelease, doneDecided}
	askRelease = &question{script.ParseRelease, freeDecided}
	askFree    = &question{script.ParseRelease, never}
	askInspect = &question{script.ParseInspect, never}
	askMost    = &question{script.ParseInspect, takenDecided}
	askCommit  = &question{script.ParseCommit, doneDecided}
	askConfirm = &question{script.ParseConfirm, doneDecided}
)

func never(Tally, int) bool { return false }

// holdDecided: whether a lock is still held.
func holdDecided(t Tally, nodes int) bool { return DecideHold(t, Majority(nodes)) != HoldUnknown }

// doneDecided: whether a majority has done it.
func doneDecided(t Tally, nodes int) bool {
	return t.Ours >= Majority(nodes) || t.Ours+t.Pending < Majority(nodes)
}

// freeDecided: whether a majority is free of our key.
func freeDecided(t Tally, nodes int) bool {
	return t.Ours+t.Nobody >= Majority(nodes) || t.Rival >= Majority(nodes)
}

// takenDecided: whether a majority has the name as somebody's.
func takenDecided(t Tally, nodes int) bool {
	return t.Rival >= Majority(nodes) || t.Nobody+t.Failed > nodes-Majority(nodes)
}
