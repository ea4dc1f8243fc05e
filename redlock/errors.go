package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The kinds of failure. Every error of this package matches, by errors.Is, one of these or the
// error of the caller's own context, or both. "Busy" and "broken" are never the same error.
var (
	// ErrHeld: a majority of the nodes named one other holder. Nothing is held; try later.
	ErrHeld = errors.New("redlock: held by another")

	// ErrNoQuorum: too few nodes gave a vote in time, or their votes stayed split. Nothing was decided,
	// and nothing is held by a failed TryLock or Lock; a lock that was held before stays usable
	// until its validity ends. The RoundError says which nodes gave no vote and why; or that none was
	// asked, of thousands of calls at once.
	ErrNoQuorum = errors.New("redlock: no quorum")

	// ErrLost: the lock was held and is not any more. What it protected may be in other hands.
	ErrLost = errors.New("redlock: lost")

	// ErrNotHeld: there was nothing to free: never held, expired (with ErrLost), or another's by
	// now (with ErrHeld).
	ErrNotHeld = errors.New("redlock: not held")

	// ErrClosed: the client was closed.
	ErrClosed = errors.New("redlock: client closed")

	// ErrInvalid: a configuration or an argument was refused; the text names the field and says
	// what is allowed. Nothing was sent to any node.
	ErrInvalid = errors.New("redlock: invalid")
)

// A RoundError tells how a request to the nodes ended. It unwraps to its sentinels, to the errors
// of the nodes, and to the error of the caller's context if that ended it.
type RoundError struct {
	Op, Name string // "lock", "extend", "unlock", "raise"

	// Votes counts the nodes that gave what was asked for; Quorum is how many it takes, of Nodes.
	Votes, Quorum, Nodes int

	// Holder is the identity of the rival with the most keys, if one was seen; with ErrHeld it has a
	// majority.
	Holder string
	// Remaining is how long that rival's lock lasts, math.MaxInt64 if its keys have no end; or how
	// long until waiting nodes vote again.
	Remaining time.Duration
	Errs      []*NodeError // of the nodes that gave no vote

	kinds  []error // sentinels, then the context's error
	detail string
	asker  string // this client's identity
	rival  string // Holder's owner token, for those who wait
	split  bool   // contenders have the votes between them
	waits  bool   // Remaining is until enough nodes give votes again, and says nothing of Holder's key
}

// Error says what happened, to which lock, and who holds it or which nodes failed.
func (e *RoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %q: ", e.Op, e.Name)
	for i, kind := range e.kinds {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strings.TrimPrefix(kind.Error(), "redlock: "))
	}
	e.writeVotes(&b)
	if e.Holder != "" {
		found := "there is a key of" // which may be a contender's, or what is left of a holder's
		if slices.Contains(e.kinds, ErrHeld) {
			found = "held by"
		}
		fmt.Fprintf(&b, "; %s %s", found, e.Holder)
		own := e.Holder == e.asker // mostly the caller's own lock, but several clients may use one identity
		if own {
			b.WriteString(", this client's own identity")
		}
		if e.Remaining > 0 && !e.waits {
			if own {
				b.WriteByte(',')
			}
			if e.Remaining > noEnd {
				b.WriteString(" for ever: its key has no end")
			} else {
				fmt.Fprintf(&b, " for another %v unless renewed", roundSpan(e.Remaining))
			}
		}
	}
	writeNodes(&b, e.Errs)
	return b.String()
}

// writeVotes says why, and how many votes there were. Where they would have been enough, the why is
// told as what was in their way.
func (e *RoundError) writeVotes(b *strings.Builder) {
	votes := fmt.Sprintf("; %d of %d votes, %d needed", e.Votes, e.Nodes, e.Quorum)
	enough := e.Nodes > 0 && e.Votes >= e.Quorum
	if enough && e.detail != "" && slices.Contains(e.kinds, ErrNoQuorum) {
		fmt.Fprintf(b, "%s, but %s", votes, e.detail)
		return
	}
	if e.detail != "" {
		fmt.Fprintf(b, " (%s)", e.detail)
	}
	// An Unlock hears from enough nodes that there is nothing to free; and a tick's claim that was won
	// says nothing of what the nodes refused after it.
	if e.Nodes > 0 && !enough {
		b.WriteString(votes)
	}
}

// writeNodes says why nodes gave no vote: what several have in common once, at the first of them.
func writeNodes(b *strings.Builder, errs []*NodeError) {
	var reasons []string
	names := map[string][]string{}
	for _, err := range errs {
		why := err.why()
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], err.Node)
	}
	for _, why := range reasons {
		word := "node"
		if len(names[why]) > 1 {
			word = "nodes"
		}
		fmt.Fprintf(b, "; %s %s: %s", word, strings.Join(names[why], ", "), why)
	}
}

// Unwrap gives all that the error can be matched against.
func (e *RoundError) Unwrap() []error {
	all := append([]error(nil), e.kinds...)
	for _, err := range e.Errs {
		all = append(all, err)
	}
	return all
}

// roundSpan leaves off digits that nobody reads.
func roundSpan(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// A NodeError is why one node gave no vote.
type NodeError struct {
	Node string // the address as configured, without password, or "client 2 (addr)"
	Op   string
	Err  error // never one that unwraps to a context error: the time-outs of nodes are our own
}

func (e *NodeError) Error() string { return fmt.Sprintf("node %s: %s", e.Node, e.why()) }

func (e *NodeError) why() string { return fmt.Sprintf("%s: %v", e.Op, e.Err) }

// Unwrap gives the node's own error.
func (e *NodeError) Unwrap() error { return e.Err }

// invalid is a refused argument.
func invalid(format string, args ...any) error {
	return &invalidError{text: fmt.Sprintf(format, args...)}
}

type invalidError struct{ during, text string }

func (e *invalidError) Error() string {
	if e.during == "" {
		return ErrInvalid.Error() + ": " + e.text
	}
	return "redlock: " + e.during + ": invalid: " + e.text
}

func (e *invalidError) Unwrap() error { return ErrInvalid }

// during says in which call arguments were refused, and of which lock if that has a name that can be.
func during(op, name string, err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var faults []error
		for _, fault := range several.Unwrap() {
			faults = append(faults, during(op, name, fault))
		}
		return errors.Join(faults...)
	}
	var refused *invalidError
	if !errors.As(err, &refused) {
		return err
	}
	if name != "" && len(name) <= MaxNameLen {
		op = fmt.Sprintf("%s %q", op, name)
	}
	return &invalidError{during: op, text: refused.text}
}
