package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A RedisNode is a node behind a go-redis client: one that Dial made, or one of the user's, with
// whatever options it has. Users' clients may repeat commands and ignore deadlines; the engine's
// own limits hold on top of that. What they cannot have is the bound on the length of a reply that
// nodes of Dial have: go-redis allocates what a hostile node announces.
type RedisNode struct {
	name    string
	client  *redis.Client
	own     bool
	timeout time.Duration
	fresh   atomic.Bool // a connection was made; always false with a user's client
}

// Wrap makes a node of a client that the user made and goes on owning.
func Wrap(client *redis.Client, name string, timeout time.Duration) *RedisNode {
	return &RedisNode{name: name, client: client, timeout: timeout}
}

// Mute keeps go-redis from writing to standard error in this process: for commands, whose output is
// for people. What it would say comes as errors, too.
func Mute() { redis.SetLogger(muted{}) }

type muted struct{}

func (muted) Printf(context.Context, string, ...any) {}

// Name is the address without password.
func (n *RedisNode) Name() string { return n.name }

// Close ends the connections of a node that Dial made; a user's client stays open.
func (n *RedisNode) Close() error {
	if !n.own {
		return nil
	}
	return n.client.Close()
}

// Exec sends the batch as one pipeline, and what was answered NOSCRIPT as a second one with the
// script's text. Without calls it is a PING.
func (n *RedisNode) Exec(ctx context.Context, batch *Batch) error {
	if len(batch.Calls) == 0 && !batch.WantReplication {
		return n.client.Ping(ctx).Err()
	}
	all := make([]int, len(batch.Calls))
	for i := range all {
		all[i] = i
	}
	if err := n.pipeline(ctx, batch, all, nil); err != nil {
		return err
	}
	missing := all[:0]
	for i := range batch.Calls {
		if isNoScript(batch.Calls[i].Err) {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	// The script's text goes along once, for the first call that needs it: Redis runs a pipeline
	// in order, so the calls after it find the script in the cache.
	texts := make(map[string]bool)
	return n.pipeline(ctx, batch, missing, texts)
}

// pipeline runs some of the batch's calls. With texts, each script not in it yet is sent in full.
func (n *RedisNode) pipeline(
	ctx context.Context, batch *Batch, which []int, texts map[string]bool,
) error {
	commands := make([]redis.StringCmd, len(which)+1) // one slab for the whole flight
	pipe := n.client.Pipeline()
	own := argSlabs.Get().(*argSlab) // nobody keeps arguments once Exec has returned
	defer own.free()
	identity := any(batch.Identity)
	for k, i := range which {
		command := batch.Calls[i].Command
		args := command.Args
		if batch.Calls[i].Guarded && batch.Identity != "" {
			args = own.with(args, identity)
		}
		if texts != nil && !texts[command.Script.SHA] {
			texts[command.Script.SHA] = true
			args = append([]any{"eval", command.Script.Text}, args[2:]...)
		}
		commands[k] = *redis.NewStringCmd(ctx, args...)
		if err := pipe.Process(ctx, &commands[k]); err != nil {
			return err
		}
	}
	info := &commands[len(which)]
	if batch.WantReplication {
		*info = *redis.NewStringCmd(ctx, "info", "replication")
		if err := pipe.Process(ctx, info); err != nil {
			return err
		}
	}
	_, err := pipe.Exec(ctx)
	if err != nil && (!isErrorReply(err) || unanswered(commands)) {
		return err
	}
	for k, i := range which {
		call := &batch.Calls[i]
		call.Reply, call.Err = commands[k].Result()
		if call.Err != nil && !isErrorReply(call.Err) {
			return call.Err
		}
		if errors.Is(call.Err, redis.Nil) {
			call.Err = errors.New("answered nonsense: nil")
		}
	}
	if batch.WantReplication {
		batch.Replication, batch.ReplicationErr = info.Result()
	}
	return nil
}

// Describe asks for INFO, and for the one setting that INFO does not show.
func (n *RedisNode) Describe(ctx context.Context) (Facts, error) {
	pipe := n.client.Pipeline()
	info := pipe.Info(ctx)
	lag := pipe.ConfigGet(ctx, "min-replicas-max-lag")
	_, err := pipe.Exec(ctx)
	if err != nil && (!isErrorReply(err) || info.Err() == nil && info.Val() == "") {
		return Facts{}, err
	}
	return readFacts(info.Val(), lag.Val()["min-replicas-max-lag"]), info.Err()
}

// unanswered reports whether an error reply was to none of the commands. go-redis returns such a one
// when the connection was refused, for a wrong password, and leaves the commands as they were.
func unanswered(commands []redis.StringCmd) bool {
	for i := range commands {
		if commands[i].Err() != nil || commands[i].Val() != "" {
			return false
		}
	}
	return true
}

// Fresh reports whether a connection was made since it was last called.
func (n *RedisNode) Fresh() bool { return n.fresh.Load() && n.fresh.Swap(false) }

// isErrorReply reports whether the node itself answered with an error: the connection is sound.
func isErrorReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
}

// Listen subscribes over a connection of its own.
func (n *RedisNode) Listen(heard func(Heard)) Listener {
	return newRedisListener(n, heard)
}

func (n *RedisNode) String() string { return fmt.Sprintf("redis node %s", n.name) }

// An argSlab is room for those arguments of a flight that differ from node to node. Arguments are
// shared between the nodes otherwise.
type argSlab struct{ args []any }

var argSlabs = sync.Pool{New: func() any { return new(argSlab) }}

// with is args with the identity that the node is to have, in the slab.
func (s *argSlab) with(args []any, identity any) []any {
	begin := len(s.args)
	s.args = append(s.args, args...)
	mine := s.args[begin:len(s.args):len(s.args)]
	mine[identityArg] = identity
	return mine
}

func (s *argSlab) free() {
	clear(s.args)
	s.args = s.args[:0]
	argSlabs.Put(s)
}
