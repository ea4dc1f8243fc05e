package quorum

import (
	"context"
	"fmt"
	"strconv"

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

	// Args is what goes over the wire: "evalsha", the script's sum, the number of keys, the keys,
	// the arguments. Elements are strings, integers or pointers to them; a pointer costs no
	// allocation.
	Args []any
}

// scriptArgs is where the keys begin in Command.Args.
const scriptArgs = 3

// keyCounts are the numbers of keys as wire arguments, made once.
var keyCounts = [...]any{"0", "1", "2", "3"}

// newCommand puts room for the script's name before the keys and arguments.
func newCommand(s *script.Script, key string, args ...any) *Command {
	return new(Command).fill(s, key, args)
}

// An acquireParcel is an acquire with room for what its arguments point to, so that it is one
// allocation.
type acquireParcel struct {
	Command
	key, register, token string
	fencing              uint64
	args                 [scriptArgs + 12]any
}

// A releaseParcel is the same for a release.
type releaseParcel struct {
	Command
	key, token, channel string
	args                [scriptArgs + 4]any
}

// fill makes c a command of the script. The arguments have room for the script's name before them.
func (c *Command) fill(s *script.Script, key string, args []any) *Command {
	args[0], args[1], args[2] = "evalsha", s.Arg, keyCounts[s.Keys]
	*c = Command{Script: s, Key: key, Args: args}
	return c
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

// Arg is the i-th key or argument as text, keys first, counted from 0.
func (c *Command) Arg(i int) string {
	switch arg := c.Args[scriptArgs+i].(type) {
	case string:
		return arg
	case *string:
		return *arg
	case int64:
		return strconv.FormatInt(arg, 10)
	case *int64:
		return strconv.FormatInt(*arg, 10)
	case uint64:
		return strconv.FormatUint(arg, 10)
	case *uint64:
		return strconv.FormatUint(*arg, 10)
	default:
		return fmt.Sprint(arg)
	}
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
