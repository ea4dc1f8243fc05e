package redlock

import "time"

// An Observer is told what happens, for metrics and logs. Fields may be nil. The functions are
// called synchronously, from several goroutines at once, some of them those that carry answers of
// nodes: they must return quickly and must not call the client. A slow one delays rounds, but not
// the end of a lost lock: its context is done before anybody is told. A panic in one of them is not
// caught: it ends the process, as in any goroutine.
type Observer struct {
	Round  func(Round)      // a round to the nodes was decided
	Gained func(Event)      // a lock was won
	Lost   func(Event)      // a held lock was lost; Err says why
	Freed  func(Event)      // a held lock was given back
	Node   func(NodeChange) // a node began to fail, or answers again
}

// A Round is one decided request to the nodes.
type Round struct {
	Op, Name     string // "lock", "extend", "unlock"
	Votes, Nodes int
	Took         time.Duration // until the decision; nodes may have answered later
	Err          error         // nil: it reached its quorum
}

// An Event is a change of one lock.
type Event struct {
	Name  string
	Token uint64        // fencing token
	Held  time.Duration // Lost, Freed: how long it had been held
	Took  time.Duration // Gained: from the call to the lock
	Err   error         // Lost: matches ErrLost
}

// A NodeChange is a node that began to fail, with the error, or with nil answers again.
type NodeChange struct {
	Node string
	Err  error
}

func (o *Observer) round(r Round) {
	if o != nil && o.Round != nil {
		o.Round(r)
	}
}

func (o *Observer) gained(e Event) {
	if o != nil && o.Gained != nil {
		o.Gained(e)
	}
}

func (o *Observer) lost(e Event) {
	if o != nil && o.Lost != nil {
		o.Lost(e)
	}
}

func (o *Observer) freed(e Event) {
	if o != nil && o.Freed != nil {
		o.Freed(e)
	}
}

func (o *Observer) node(c NodeChange) {
	if o != nil && o.Node != nil {
		o.Node(c)
	}
}
