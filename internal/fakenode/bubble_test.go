package fakenode_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/nodetest"
	"github.com/quorumlock/quorumlock/quorum"
)

// Everything here happens in virtual time, with one lock on one node.

const (
	ttl   = 10 * time.Second
	week  = 7 * 24 * time.Hour
	mine  = "ql1:me/1"
	rival = "ql1:rival/1"
)

var keys = nodetest.KeysOf("", "job")

// A bench is a test's node, and who asks it.
type bench struct {
	*testing.T
	*fakenode.Node
}

// inBubble runs f with an empty node.
func inBubble(t *testing.T, f func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(&bench{t, fakenode.New("node 1")}) })
}

func acquire(token string) *quorum.Command {
	return nodetest.Acquire{Keys: keys, Token: token, TTL: ttl,
		Proposed: uint64(time.Now().UnixMicro()), Allowance: ttl / 2,
		HalfLife: week / 2, Life: week, MaxTTL: ttl}.Command()
}

func extend(token string) *quorum.Command { return nodetest.Extend(keys, token, ttl, week) }

func release(token string) *quorum.Command { return nodetest.Release(keys, token, 0) }

func batchOf(commands ...*quorum.Command) *quorum.Batch {
	batch := &quorum.Batch{}
	for _, c := range commands {
		batch.Calls = append(batch.Calls, quorum.Call{Command: c})
	}
	return batch
}

// ask sends commands and waits for at most a second. It returns the letters of the replies.
func (b *bench) ask(node quorum.Node, commands ...*quorum.Command) (letters string, err error) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Second)
	defer cancel()
	batch := batchOf(commands...)
	err = node.Exec(ctx, batch)
	for _, call := range batch.Calls {
		switch {
		case call.Err != nil:
			letters += "e"
		case call.Reply != "":
			letters += call.Reply[:1]
		}
	}
	return letters, err
}

// wants wants commands to be answered so, after just that long.
func (b *bench) wants(letters string, after time.Duration, commands ...*quorum.Command) {
	b.Helper()
	start := time.Now()
	got, err := b.ask(b.Node, commands...)
	if err != nil || got != letters {
		b.Errorf("got %q, %v; want %q", got, err, letters)
	}
	if took := time.Since(start); took != after {
		b.Errorf("took %v, want %v", took, after)
	}
}

// wantsNothing wants no answer within the second that ask waits.
func (b *bench) wantsNothing(commands ...*quorum.Command) {
	b.Helper()
	start := time.Now()
	got, err := b.ask(b.Node, commands...)
	if !errors.Is(err, context.DeadlineExceeded) || got != "" {
		b.Errorf("got %q, %v; want nothing but the context's end", got, err)
	}
	if took := time.Since(start); took != time.Second {
		b.Errorf("took %v, want the whole second", took)
	}
}

// wantsError wants Exec to fail at once, and for no reason of the context's.
func (b *bench) wantsError(node quorum.Node, commands ...*quorum.Command) {
	b.Helper()
	start := time.Now()
	got, err := b.ask(node, commands...)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || got != "" {
		b.Errorf("got %q, %v; want an error of the way", got, err)
	}
	if took := time.Since(start); took != 0 {
		b.Errorf("took %v, want an answer at once", took)
	}
}

func (b *bench) wantHolder(token string) {
	b.Helper()
	if got, _ := b.Get(keys.Lock); got != token {
		b.Errorf("holder: got %q, want %q", got, token)
	}
}

// pass lets time pass, and everything that is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// replication is the answer to INFO replication.
func (b *bench) replication() string {
	b.Helper()
	batch := &quorum.Batch{WantReplication: true}
	if err := b.Exec(b.Context(), batch); err != nil || batch.ReplicationErr != nil {
		b.Fatal(err, batch.ReplicationErr)
	}
	return batch.Replication
}
