package quorum

import (
	"errors"
	"math"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// A ballot is what an attempt knows of one node, beside its vote.
type ballot struct {
	request  request  // the first message
	out      *request // the message that is out; the vote is that of the last answer, or Pending
	unsure   bool     // a message was sent and never answered: it may still arrive
	again    bool     // a silent node was asked once more
	mayHold  bool     // the key can be there, now or later
	barred   bool     // the key is being taken back: the node is not asked again meanwhile
	left     time.Duration
	register uint64
	granted  grounds // with a vote
	err      error
}

// votesFrom is when, by its own clock, a node votes whose memory began at since, that has been told
// to vote from then on, and knows of most as the largest MaxTTL.
func votesFrom(since, from, most time.Duration) time.Duration { return max(from, since+most) }

// later is by how much a node that knows of most votes later: another one knows of a larger MaxTTL.
func (e *Engine) later(most time.Duration) time.Duration { return max(0, e.largest.Load().d-most) }

// waits is the error of a node that may not vote yet, as seen from the largest MaxTTL that any
// node knows of. A script knows only its own node's.
func (e *Engine) waits(reply script.Reply, err error) error {
	if err != nil || reply.Since == 0 {
		return err
	}
	e.noteMaxTTL(reply.MaxTTL)
	return e.mayNotVote(groundsOf(reply), reply.Letter == script.Waits)
}

// grounds are what a node's vote rests on: the largest MaxTTL that it knows of, and how long it still
// had to wait by that one when it answered; 0 or less: not at all. The zero value is no grounds.
type grounds struct{ left, maxTTL time.Duration }

// anOperatorsWord is left of a node that votes whatever MaxTTL is heard of: its guard is off, or an
// operator said so.
const anOperatorsWord = math.MinInt64 / 2

func groundsOf(r script.Reply) grounds {
	left := time.Duration(anOperatorsWord)
	if r.Since != 0 && r.From != 0 {
		left = votesFrom(r.Since, r.From, r.MaxTTL) - r.Time
	}
	return grounds{left, r.MaxTTL}
}

// mayNotVote is the error of a node that may not vote yet; waits: it says so itself.
func (e *Engine) mayNotVote(g grounds, waits bool) error {
	if g.left == anOperatorsWord {
		return nil
	}
	left := g.left + e.later(g.maxTTL)
	if left > 0 || waits {
		return &WaitError{Left: max(left, 0)}
	}
	return nil
}

// take turns an answer into a vote.
func (b *ballot) take(reply script.Reply, err error, got answer) Vote {
	b.err = err
	b.unsure = b.unsure || got.twice
	if err == nil {
		switch reply.Letter {
		case script.Done, script.Ours:
			b.register = reply.Register
			return Vote{Kind: Granted}
		case script.Rival:
			b.mayHold, b.left = b.unsure, reply.Left
			return Vote{Kind: Refused, Holder: reply.Holder}
		case script.Waits:
			b.err = &WaitError{}
		case script.Early:
			b.err = errEarly
		default:
			b.err = errUnknownMemory
		}
	}
	switch {
	case reply.Letter == script.Waits, reply.Letter == script.Unknown,
		reply.Letter == script.Early, neverRan(got):
		b.mayHold = b.unsure // by this message there is no key of ours
	default:
		b.unsure = true
	}
	return Vote{Kind: Failed}
}

var errEarly = errors.New("gives no vote yet: by its clock the tick is not due")

var errUnknownMemory = errors.New("gives no vote: its memory is not the one expected")
