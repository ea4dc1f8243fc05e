package schedule

import "time"

// A Tick is one instant of a job's schedule, or a run on request. Its identity is Job and At: in
// every zone and on every replica the same instant is the same tick, and two instants with the
// same wall-clock text, as in the night when daylight saving ends, are two.
type Tick struct {
	Job     string
	At      time.Time // the scheduled instant, UTC; of a Manual one the moment of the request
	Attempt int       // 1: the first run of this tick
	Token   uint64    // fencing token: grows from tick to tick of a job
	Missed  bool      // kept for ticks that are caught up
	Manual  bool      // by RunNow: no tick of the schedule
}

// Overlap says what becomes of a tick while a run of the same job is still under way, on whichever
// replica.
type Overlap uint8

const (
	// OverlapSkip passes the tick over, on record: at most one run of a job at a time, on all
	// replicas together. The run holds a lock, and its context ends when that is lost.
	OverlapSkip Overlap = iota
	// OverlapAllow runs it beside the other.
	OverlapAllow
)
