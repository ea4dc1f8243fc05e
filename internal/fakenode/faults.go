package fakenode

import (
	"sync"
	"time"
)

// Faults are what a way does to the messages on it. The zero state is a way that is instant and
// sound. Its methods may be called at any time and hold for messages that set out afterwards.
//
// The functions given to it are asked once per message, one at a time for one Faults; they must
// not call methods of it, of its node or of links. Nil lifts the fault. See chance.go for some.
type Faults struct {
	changed func() // called after the way went dead or came back

	mu            sync.Mutex // guards all below
	requestDelay  func() time.Duration
	replyDelay    func() time.Duration
	loseRequest   func() bool
	loseReply     func() bool
	losePublished func() bool
	breakReplies  func(calls int) int
	repeat        func() (time.Duration, bool)
	effort        time.Duration
	ignore        time.Duration
	down          bool
	parted        bool
}

func newFaults(changed func()) *Faults { return &Faults{changed: changed} }

// DelayRequests says how long each request is on its way. It is executed when it arrives, also
// if its sender has given up by then. Different delays reorder messages.
func (f *Faults) DelayRequests(takes func() time.Duration) {
	f.set(func() { f.requestDelay = takes })
}

// DelayReplies says how long each reply, and each published message, is on its way.
func (f *Faults) DelayReplies(takes func() time.Duration) {
	f.set(func() { f.replyDelay = takes })
}

// LoseRequests says which requests get lost. Their senders wait until their contexts end.
func (f *Faults) LoseRequests(lose func() bool) { f.set(func() { f.loseRequest = lose }) }

// LoseReplies says which replies get lost; the requests were executed.
func (f *Faults) LoseReplies(lose func() bool) { f.set(func() { f.loseReply = lose }) }

// LosePublished says which published messages get lost without a trace.
func (f *Faults) LosePublished(lose func() bool) { f.set(func() { f.losePublished = lose }) }

// BreakReplies says how many of a batch's replies arrive before the connection breaks. As many as
// there are calls, or more: it does not break.
func (f *Faults) BreakReplies(answered func(calls int) int) {
	f.set(func() { f.breakReplies = answered })
}

// Repeat says which batches are executed a second time as a whole, and how long after the first,
// as by a client that repeats what it got no answer to. Whichever reply arrives first is the
// sender's, so with a lost reply it is that of the repetition. A repetition is never repeated.
func (f *Faults) Repeat(again func() (after time.Duration, again bool)) {
	f.set(func() { f.repeat = again })
}

// IgnoreDeadlines makes Exec wait for d whatever its context says, as users' clients do that have
// a read time-out and no eye for contexts; so late answers are seen. Zero lifts it.
func (f *Faults) IgnoreDeadlines(d time.Duration) { f.set(func() { f.ignore = d }) }

// Effort keeps the node busy for d with each command: answers leave it one after the other, also
// those that nobody waits for any more. It counts on the node's Faults alone, not on a Link's.
func (f *Faults) Effort(d time.Duration) { f.set(func() { f.effort = d }) }

// Down refuses connections: Exec fails at once, requests that arrive fail then, and listeners
// break until it is lifted.
func (f *Faults) Down(down bool) {
	f.mu.Lock()
	changed := f.down != down
	f.down = down
	f.mu.Unlock()
	if changed {
		f.changed()
	}
}

// Partition loses everything without a word, subscriptions included; these break when it is lifted,
// which is when a client's health check would find out.
func (f *Faults) Partition(parted bool) {
	f.mu.Lock()
	healed := f.parted && !parted
	f.parted = parted
	f.mu.Unlock()
	if healed {
		f.changed()
	}
}

// Clear lifts all faults of this way.
func (f *Faults) Clear() {
	f.mu.Lock()
	dead := f.down || f.parted
	f.requestDelay, f.replyDelay = nil, nil
	f.loseRequest, f.loseReply, f.losePublished = nil, nil, nil
	f.breakReplies, f.repeat = nil, nil
	f.ignore, f.effort, f.down, f.parted = 0, 0, false, false
	f.mu.Unlock()
	if dead {
		f.changed()
	}
}

func (f *Faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *Faults) requestTakes() time.Duration { return f.takes(&f.requestDelay) }
func (f *Faults) replyTakes() time.Duration   { return f.takes(&f.replyDelay) }

func (f *Faults) takes(delay *func() time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *delay == nil {
		return 0
	}
	return (*delay)()
}

func (f *Faults) losesRequest() bool   { return f.loses(&f.loseRequest) }
func (f *Faults) losesReply() bool     { return f.loses(&f.loseReply) }
func (f *Faults) losesPublished() bool { return f.loses(&f.losePublished) }

func (f *Faults) loses(lose *func() bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parted || *lose != nil && (*lose)()
}

func (f *Faults) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

func (f *Faults) isParted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parted
}

func (f *Faults) ignored() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ignore
}

func (f *Faults) takesEffort() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.effort
}

func (f *Faults) repeats() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.repeat == nil {
		return 0, false
	}
	return f.repeat()
}

func (f *Faults) answered(calls int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.breakReplies == nil {
		return calls
	}
	return max(0, f.breakReplies(calls))
}
