package quorum

import "time"

// A Vote is what one node said to a request for a lock, as far as the decision needs it.
type Vote struct {
	Kind   VoteKind
	Holder string // Refused: the owner token found on the node
}

// VoteKind tells the votes apart.
type VoteKind uint8

// What a node can have said.
const (
	Pending VoteKind = iota // nothing yet
	Granted                 // the key there is ours
	Refused                 // the key there is somebody else's
	Failed                  // no vote: an error, no answer in time, or a node that may not vote
)

// A Verdict is what votes amount to.
type Verdict uint8

// The verdicts on a request for a lock.
const (
	Undecided Verdict = iota // answers that are still out can change the outcome
	Won                      // a majority granted
	Held                     // a majority names one and the same other holder
	Split                    // enough nodes voted, but for nobody can it become a majority
	NoQuorum                 // too few nodes voted
)

func (v Verdict) String() string {
	return [...]string{"undecided", "won", "held", "split", "no quorum"}[v]
}

// Decide says what the votes amount to. It is final as soon as it is not Undecided: no later
// answer of a pending node can change it. It reads no clock and asks no node.
//
// Held needs one owner token on a majority. Refusals by several rivals do not add up: none of
// them holds the lock, and perhaps none ever will.
func Decide(votes []Vote) Verdict {
	quorum := Majority(len(votes))
	var granted, failed, pending int
	for i := range votes {
		switch votes[i].Kind {
		case Pending:
			pending++
		case Granted:
			granted++
		case Failed:
			failed++
		}
	}
	rival, _ := strongest(votes)
	switch {
	case granted >= quorum:
		return Won
	case rival >= quorum:
		return Held
	case len(votes)-failed < quorum:
		return NoQuorum
	case granted+pending >= quorum, rival+pending >= quorum:
		return Undecided
	case pending > 0 && len(votes)-failed-pending < quorum:
		return Undecided // it will be split or no quorum, and the difference matters to the caller
	}
	return Split
}

// strongest is the rival found on the most nodes, and on how many; of several, the one whose
// token goes first.
func strongest(votes []Vote) (nodes int, holder string) {
	for i := range votes {
		if votes[i].Kind != Refused {
			continue
		}
		n := 0
		for j := range votes {
			if votes[j].Kind == Refused && votes[j].Holder == votes[i].Holder {
				n++
			}
		}
		if n > nodes || n == nodes && goesFirst(votes[i].Holder, holder) {
			nodes, holder = n, votes[i].Holder
		}
	}
	return nodes, holder
}

// A Standing is the place of a contender among those who share a split vote.
type Standing uint8

// The standings.
const (
	Unclear Standing = iota // a node that has not answered could change it
	Leads                   // stays, and asks the missing nodes again
	Trails                  // gives its nodes back
)

// Stand says whether the contender that goes by token leads a split vote: the one with the most
// nodes does, of several the one whose token goes first. Contenders that see the same votes agree
// on the leader, and so one of them is left; where they do not see the same, two may think they
// lead, so each judges anew at every answer (protocol review, V1, V4).
//
// Nodes that are pending keep it unclear as long as they could change it. Failed ones count for
// nobody: ask them once more before acting on Trails (V2).
func Stand(votes []Vote, token string) Standing {
	var granted, pending int
	for i := range votes {
		switch votes[i].Kind {
		case Granted:
			granted++
		case Pending:
			pending++
		}
	}
	rival, holder := strongest(votes)
	switch {
	case ahead(granted, token, rival+pending, holder) && (pending == 0 || granted > pending):
		return Leads
	case rival > 0 && !ahead(granted+pending, token, rival, holder):
		return Trails
	case pending > 0:
		return Unclear
	case ahead(granted, token, rival, holder):
		return Leads
	}
	return Trails
}

// ahead reports whether a contender with this many nodes goes before a rival with that many.
func ahead(nodes int, token string, rivalNodes int, rival string) bool {
	if nodes != rivalNodes {
		return nodes > rivalNodes
	}
	return rival == "" || goesFirst(token, rival)
}

// Strongest is the owner token found on the most nodes, on how many, and how long until a majority
// of the nodes is free unless it is renewed.
func Strongest(seen []Inspection) (holder string, nodes int, left time.Duration) {
	votes := make([]Vote, len(seen))
	free := 0
	for i, s := range seen {
		switch {
		case s.Err != nil:
		case s.Holder != "":
			votes[i] = Vote{Kind: Refused, Holder: s.Holder}
		default:
			free++
		}
	}
	nodes, holder = strongest(votes)
	var lefts []time.Duration
	for _, s := range seen {
		if s.Err == nil && s.Holder == holder && holder != "" {
			lefts = append(lefts, s.Left)
		}
	}
	return holder, nodes, untilFree(lefts, free, Majority(len(seen)))
}
