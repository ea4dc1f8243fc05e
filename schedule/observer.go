package schedule

import "time"

// An Observer is told what becomes of ticks on this replica, for metrics and logs. Fields may be
// nil. The functions are called synchronously, from several goroutines at once, and must return
// quickly. A panic in Started is reported as the run's; in the others it is not caught, and ends the
// process, as in any goroutine.
type Observer struct {
	Started func(TickEvent) // a run begins
	Ended   func(TickEvent) // it has ended; Err says how: nil, the run's error, a panic, a loss
	Skipped func(TickEvent) // a tick is not run here; Err says why: see ErrTickTaken and so on
}

// A TickEvent is what became of a tick.
type TickEvent struct {
	Tick  Tick          // Skipped: without a Token
	Votes int           // nodes that granted the claim, when the last one needed did
	Claim time.Duration // Started, Ended: from the first message to the commit
	Late  time.Duration // Started, Ended: from the instant to the start of the run
	Took  time.Duration // Ended: of the run
	Err   error         // Ended, Skipped
}

func (o *Observer) started(e TickEvent) {
	if o != nil && o.Started != nil {
		o.Started(e)
	}
}

func (o *Observer) ended(e TickEvent) {
	if o != nil && o.Ended != nil {
		o.Ended(e)
	}
}

func (o *Observer) skipped(e TickEvent) {
	if o != nil && o.Skipped != nil {
		o.Skipped(e)
	}
}
