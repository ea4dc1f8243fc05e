package main

import (
	"errors"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// The kinds of record.
const (
	isReady = "ready" // the replica takes part
	isClock = "clock" // its wall clock was set
	isRun   = "run"   // a run began
	isDone  = "done"  // and ended by itself
	isNo    = "no"    // a tick is not run there
)

// The reasons of a replica that does not run a tick, in a word.
const (
	passedOver = "passed over"
	taken      = "taken"
	undecided  = "undecided"
	tooEarly   = "too early"
	tooLate    = "too late"
)

// A record is one line that a replica writes, at once, so that what was written is there also when
// the process is killed.
type record struct {
	Kind    string
	Replica string
	At      int64 // the tick's instant, ms
	Token   uint64
	When    int64    // the replica's own wall clock, ms
	Why     string   // no: in a word
	Text    string   // no: the error
	Holder  string   // no: who was seen to have the tick, or the run lock
	Silent  []string // no: addresses of nodes that gave no vote

	came   time.Time // when it was read, by the machine's clock
	silent []int     // the nodes' numbers
}

// refusal is a record of a tick that is not run, for this error.
func refusal(at time.Time, err error) record {
	r := record{Kind: isNo, At: at.UnixMilli(), Why: "for another reason", Text: err.Error()}
	for kind, why := range map[error]string{schedule.ErrTickTaken: taken,
		schedule.ErrTickUndecided: undecided, schedule.ErrTickTooEarly: tooEarly,
		schedule.ErrTickTooLate: tooLate} {
		if errors.Is(err, kind) {
			r.Why = why
		}
	}
	if r.Why == taken && strings.Contains(r.Text, passedOver) {
		r.Why = passedOver
	}
	var round *redlock.RoundError
	if errors.As(err, &round) {
		r.Holder = round.Holder
		for _, node := range round.Errs {
			r.Silent = append(r.Silent, node.Node)
		}
	}
	return r
}
