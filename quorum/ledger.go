package quorum

// A Read is what one node knows of a tick.
type Read struct {
	Answered bool
	// Granted: the claim lock is ours there, so nobody else's commit can still come.
	Granted bool
	// Knows: the node's memory began before the tick, and marks of that age were not dropped.
	Knows bool
	// Owner token of the claim that marked the tick there; "": no mark.
	Owner string
	State string // of that mark
	Time  int64  // the node's clock, ms
}

// A TickVerdict says whether a tick may be run.
type TickVerdict uint8

// The verdicts on a tick.
const (
	TickUndecided TickVerdict = iota // somebody may have run it: do not run it, ask again
	TickTaken                        // somebody's mark is on a majority
	TickFree                         // nobody can have run it: commit, then run
)

// DecideTick says what the nodes' reads of a tick amount to. A claimer runs a tick only when its
// mark is on a majority of all nodes, so a tick is
//
//   - taken, if one owner's mark is on a majority. Marks of several dead claimers do not add up;
//   - free, if for every other owner its marks, together with all nodes that were not read, stay
//     below a majority: it cannot have run the tick. A node is read only if it granted this claim
//     (otherwise a commit may still come there) and knows the tick's time;
//   - undecided otherwise.
//
// Marks for which ours is true count for nothing: they are of attempts of this process that are
// known not to have started the tick. Protocol review, rules 7 and 8, R1, R2, R6.
func DecideTick(reads []Read, ours func(owner string) bool) (verdict TickVerdict, owner, state string) {
	quorum := Majority(len(reads))
	marks := make(map[string]int)  // by owner, on all nodes that answered
	proven := make(map[string]int) // by owner, on nodes that were read
	states := make(map[string]string)
	unread := 0
	for _, r := range reads {
		read := r.Answered && r.Granted && r.Knows
		if !read {
			unread++
		}
		if !r.Answered || r.Owner == "" || ours(r.Owner) {
			continue
		}
		marks[r.Owner]++
		states[r.Owner] = r.State
		if read {
			proven[r.Owner]++
		}
	}
	for x, n := range marks {
		if n >= quorum {
			return TickTaken, x, states[x]
		}
	}
	if unread >= quorum { // also of an owner whose marks were not seen
		return TickUndecided, "", ""
	}
	for x := range marks {
		if proven[x]+unread >= quorum {
			return TickUndecided, x, states[x]
		}
	}
	return TickFree, "", ""
}
