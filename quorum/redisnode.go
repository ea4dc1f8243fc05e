package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// Exec sends the batch as one pipeline; what was answered NOSCRIPT goes in a second one, with the
// script's text, and what a message for many locks could not do goes one by one. Without calls it
// is a PING.
func (n *RedisNode) Exec(ctx context.Context, batch *Batch) error {
	if len(batch.Calls) == 0 && !batch.WantReplication {
		return n.client.Ping(ctx).Err()
	}
	batch.Replication, batch.ReplicationErr = "", nil
	w := wireFor(n)
	defer w.free()
	for packed := 0; ; {
		packed = w.pack(batch, packed)
		for first := true; first || len(w.messages) > 0; first = false {
			if err := n.pipeline(ctx, batch, w); err != nil {
				return err
			}
			w.again(batch)
		}
		if packed == len(batch.Calls) {
			return nil
		}
	}
}

// pipeline sends the messages, and INFO behind them if it is wanted: it proves what came before it
// in the same pipeline, and no more than that, because another may go to another server.
func (n *RedisNode) pipeline(ctx context.Context, batch *Batch, w *wire) error {
	pipe := n.client.Pipeline()
	for _, m := range w.messages {
		if err := pipe.Process(ctx, w.write(ctx, batch, m)); err != nil {
			return err
		}
	}
	var info *redis.StringCmd
	if batch.WantReplication {
		info = redis.NewStringCmd(ctx, "info", "replication")
		if err := pipe.Process(ctx, info); err != nil {
			return err
		}
	}
	commands, err := pipe.Exec(ctx)
	if err != nil && (!isErrorReply(err) || unanswered(commands)) {
		return err
	}
	for _, m := range w.messages {
		if err := m.read(batch); err != nil {
			return err
		}
	}
	if info != nil {
		batch.noteReplication(info.Result())
	}
	return nil
}

// noteReplication takes in what one pipeline's INFO says. Should it not be what the calls were told
// to expect, then later ones change nothing about that.
func (b *Batch) noteReplication(info string, err error) {
	if b.ReplicationErr != nil && b.Identity != "" {
		return
	}
	if b.Replication != "" && b.Identity != "" {
		if was := readReplication(b.Replication); was.role != "master" || was.identity != b.Identity {
			return
		}
	}
	b.Replication, b.ReplicationErr = info, err
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

// unanswered reports whether an error reply was to none of the commands. go-redis returns such a
// one when the connection was refused, for a wrong password, and leaves the commands as they were.
func unanswered(commands []redis.Cmder) bool {
	for _, c := range commands {
		if c.Err() != nil {
			return false
		}
		switch c := c.(type) {
		case *redis.StringCmd:
			if c.Val() != "" {
				return false
			}
		case *redis.StringSliceCmd:
			if c.Val() != nil {
				return false
			}
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
