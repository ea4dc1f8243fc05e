package quorum

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorumlock/internal/script"
)

// A Node is one independent Redis node, as the engine sees it: batches go in, answers come out,
// and channels can be listened to. It does I/O and nothing else; when to ask, how long to wait and
// what an answer is worth is decided above it. Its methods may be called concurrently.
//
// There are two: one over go-redis, and one in memory that loses, delays, repeats and forgets on
// command, so that everything timed can be tested in virtual time.
type Node interface {
	// Name is the address as configured, without password.
	Name() string

	// Exec runs the batch's calls in their order, in one round trip where no script is missing,
	// and fills in what each answered. It returns an error when the node could not be asked or
	// stopped answering half-way; answers of single calls, errors among them, are in the calls.
	// It should return when ctx ends but need not: the engine stops waiting by itself.
	Exec(ctx context.Context, batch *Batch) error

	// Describe asks the node what it says of itself: INFO and CONFIG. Where the node refuses to
	// say, the error is its error reply.
	Describe(ctx context.Context) (Facts, error)

	// Fresh reports whether a new connection was made since Fresh was last called, so that the
	// address may lead to another server by now.
	Fresh() bool

	// Listen opens a subscription without channels. The node tells heard what comes, from one
	// goroutine, until the listener is closed.
	Listen(heard func(Heard)) Listener

	// Close ends the node's connections, if they are its own.
	Close() error
}

// A Batch is what goes to a node together.
type Batch struct {
	Calls []Call

	// Distinct says that no two calls are about the same key: they may go in any order.
	Distinct bool

	// Identity of the node's memory takes the place that guarded calls keep for it.
	Identity string

	// WantReplication asks for `INFO replication` after the last call, on the same connection.
	// A batch that is repeated is repeated as a whole, so the answer belongs to these calls. Where it
	// takes several pipelines each has its own, and one that names another memory is kept.
	WantReplication bool
	Replication     string
	ReplicationErr  error

	stepped bool // the node's clock was stepped not long ago
}

// A Call is one command of a batch, and what the node answered to it.
type Call struct {
	Command *Command
	Guarded bool // acquire or plant: counts only if the node's memory is the expected one
	Reply   string
	Err     error // the node's error reply, or why there is no reply
	Void    bool  // Err, and the node may have done it all the same
}

// A Command is a script with its arguments. It is shared between the nodes, and not changed once
// it was sent.
type Command struct {
	Script *script.Script

	// Key names what the message is about. On one node, messages about one key wait for each
	// other, so that flights and repetitions never reorder them.
	Key string

	// Own are the keys, then the arguments; of a script that takes many locks in a call only those
	// that differ from lock to lock, and what is the same for all is in Common. Elements are strings,
	// integers or pointers to them; a pointer costs no allocation.
	Own    []any
	Common *Common
}

// Common is what a script that takes many locks in a call is told once for all of them. Commands
// with the same one go in one message.
type Common struct{ Keys, Args []any }

// newCommand makes a command of a script that has no Many: words are all its keys, then all its
// arguments. One that has needs its Common.
func newCommand(s *script.Script, key string, words ...any) *Command {
	return &Command{Script: s, Key: key, Own: words}
}

// An acquireParcel is an acquire with room for what its arguments point to, so that it is one
// allocation.
type acquireParcel struct {
	Command
	register string
	own      [4]any
}

// A releaseParcel is the same for a release.
type releaseParcel struct {
	Command
	token, channel string
	own            [3]any
}

// parts are the keys, then the arguments, in the script's order.
func (c *Command) parts() [4][]any {
	keys := c.Script.Keys
	if c.Common == nil {
		return [4][]any{c.Own[:keys], nil, c.Own[keys:], nil}
	}
	keys -= len(c.Common.Keys)
	return [4][]any{c.Own[:keys], c.Common.Keys, c.Own[keys:], c.Common.Args}
}

// plain is an argument as those know them who look at the commands of their own clients.
func plain(arg any) any {
	switch arg := arg.(type) {
	case *string:
		return *arg
	case *int64:
		return *arg
	case *uint64:
		return *arg
	}
	return arg
}

// Words are the keys, then the arguments, as text.
func (c *Command) Words() (words []string) {
	for _, part := range c.parts() {
		for _, arg := range part {
			words = append(words, fmt.Sprint(plain(arg)))
		}
	}
	return words
}

// Heard is something that a listener was told.
type Heard struct {
	Kind    HeardKind
	Channel string // Subscribed, Published, Counted
	Payload string // Published
	Count   int    // Counted
}

// HeardKind tells what was heard.
type HeardKind uint8

// What a listener can be told.
const (
	Subscribed HeardKind = iota // from now on messages on Channel arrive; said again after a break
	Published                   // a message on Channel
	Broken                      // the connection is gone; messages may be missed until Subscribed
	Counted                     // so many listen to Channel on this node
)

// A Listener listens on channels of one node. Its methods do not block.
type Listener interface {
	Subscribe(channel string)
	Unsubscribe(channel string)
	Count(channel string) // asks how many listen; a node that does not tell leaves it unanswered
	Close()
}
