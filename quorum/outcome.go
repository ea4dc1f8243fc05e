package quorum

import (
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
)

// An Outcome is what an attempt came to. Unless it was Won, nothing is held, and what may have
// been left on nodes is being released in the background.
type Outcome struct {
	Verdict Verdict
	Err     error // the context's error, if that ended the attempt

	Votes     int           // nodes that granted
	Holder    string        // owner token of the rival found on the most nodes
	Remaining time.Duration // until enough of that rival's keys have ended
	Errs      []NodeErr     // of the nodes that gave no vote
	Unraised  bool          // there were votes enough, and too few nodes took the fencing token in time

	Started clock.Reading // before the first byte was sent: validity counts from here
	Token   string        // the claim's owner token
	Fencing uint64        // Won: the fencing token
	Touched Set           // Won: nodes that may hold the key
	Unsure  Set           // Won: of these, where a message without an answer may still arrive
	Voters  Set           // Won: nodes whose word that they hold the key counts
	Reads   []Read        // of a tick: what each node knows of it
	Early   time.Duration // of a tick: until enough nodes' clocks show its instant

	attempt *attempt
}

// The Rest of an attempt that was won are its messages without an answer.
type Rest struct{ attempt *attempt }

// Rest is what is still out.
func (out Outcome) Rest() Rest { return Rest{out.attempt} }

// Recall takes back, under load, what was not sent yet, and says to which nodes: they surely will
// not get the key by this attempt.
func (r Rest) Recall() (recalled Set) {
	a := r.attempt
	if a == nil || !a.engine.front.load.Load() {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.ballots {
		b := &a.ballots[i]
		if b.out == nil || !a.engine.lanes[i].withdraw(b.out) {
			continue
		}
		b.out = nil
		if b.mayHold = b.unsure; !b.unsure {
			recalled |= 1 << i
		}
	}
	return recalled
}

// News is what becomes known of nodes while a lock is held.
type News struct {
	Granted Set // they have the key, and their word that they have it counts
	Sure    Set // no message is out any more that could still bring the key
	Barred  Set // they have the key without a vote, and are asked to free it: not to be planted
	Freed   Set // they did: may be planted again
	Landed  Set // their plant is over; where it is not sure as well, it may still arrive
}

// OnLate makes f be told of nodes that answer only after the attempt was won. It may be called
// before OnLate returns, and must not block.
func (out Outcome) OnLate(f func(News)) {
	a := out.attempt
	a.mu.Lock()
	a.onLate = f
	var news News
	for i := range a.votes {
		if a.votes[i].Kind == Granted && !out.Voters.Has(i) {
			news.Granted |= 1 << i
		}
		if a.ballots[i].barred {
			news.Barred |= 1 << i
		}
	}
	_, unsure := a.traces()
	a.mu.Unlock()
	news.Sure = out.Unsure &^ unsure
	if news != (News{}) {
		f(news)
	}
}

// Free frees a lock that was won, in the background; of one that was not, all is freed by itself.
func (out Outcome) Free() {
	if out.Verdict == Won {
		out.attempt.free()
	}
}

// A NodeErr is why a node gave no vote.
type NodeErr struct {
	Node int
	Err  error
}

// outcome sums the votes up. Called with a.mu held.
func (a *attempt) outcome(verdict Verdict, err error) Outcome {
	out := Outcome{Verdict: verdict, Err: err, Started: a.started, Token: a.token}
	_, out.Holder = strongest(a.votes)
	var rivals []time.Duration
	for i, v := range a.votes {
		switch v.Kind {
		case Granted:
			out.Votes++
		case Refused:
			if v.Holder == out.Holder {
				rivals = append(rivals, a.ballots[i].left)
			}
		case Failed:
			out.Errs = append(out.Errs, NodeErr{Node: i, Err: a.ballots[i].err})
		}
	}
	if a.tick != nil {
		out.Reads, out.Early = a.reads()
	}
	switch verdict {
	case Won:
	case NoQuorum:
		out.Remaining = untilVotes(a.ballots)
	default:
		out.Remaining = untilFree(rivals, out.Votes, Majority(len(a.votes)))
	}
	return out
}

// untilVotes is how long it takes until enough of the waiting nodes vote, to make a majority with
// those that do now; 0 if that would not help.
func untilVotes(ballots []ballot) time.Duration {
	missing := Majority(len(ballots))
	var waits []time.Duration
	for i := range ballots {
		var wait *WaitError
		switch err := ballots[i].err; {
		case err == nil:
			missing--
		case errors.As(err, &wait):
			waits = append(waits, wait.Left)
		}
	}
	if missing <= 0 || missing > len(waits) {
		return 0
	}
	slices.Sort(waits)
	return waits[missing-1]
}

// untilFree is how long it takes until, with those nodes that are free, a majority is: as many of
// the rival's keys as are missing have ended by then. A key without an end counts as one that
// ends never.
func untilFree(rivals []time.Duration, free, quorum int) time.Duration {
	missing := quorum - free
	if len(rivals) == 0 || missing <= 0 {
		return 0
	}
	for i, left := range rivals {
		if left < 0 {
			rivals[i] = 1<<63 - 1
		}
	}
	slices.Sort(rivals)
	return rivals[min(missing, len(rivals))-1]
}
