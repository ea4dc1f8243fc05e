package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A slowNode takes its time for each command, one batch after another, as a server does. It can be
// switched off.
type slowNode struct {
	*fakenode.Node
	each time.Duration
	busy chan struct{}
	off  bool // changed only while nothing is under way
}

func (n *slowNode) Exec(ctx context.Context, batch *quorum.Batch) error {
	n.busy <- struct{}{}
	defer func() { <-n.busy }()
	if n.off {
		return errors.New("connection refused")
	}
	time.Sleep(time.Duration(len(batch.Calls)) * n.each)
	return n.Node.Exec(ctx, batch)
}

// holdMany takes count locks on nodes that need that long for each command.
func holdMany(t *testing.T, count int, each time.Duration) (
	*redlock.Client, []*slowNode, []*redlock.Lock,
) {
	t.Helper()
	var nodes []*slowNode
	var asNodes []quorum.Node
	for i := range 3 {
		nodes = append(nodes, &slowNode{Node: fakenode.New(fmt.Sprintf("node%d:6379", i)), each: each,
			busy: make(chan struct{}, 1)})
		asNodes = append(asNodes, nodes[i])
	}
	cfg := redlock.Config{TTL: time.Minute, DisableRestartGuard: true,
		NodeTimeout: redlock.DefaultNodeTimeout, Logger: slog.New(slog.DiscardHandler)}
	made, err := door.NewClient(cfg, asNodes, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*redlock.Client)
	var locks []*redlock.Lock
	for i := range count {
		l, err := c.TryLock(t.Context(), fmt.Sprint("lock ", i))
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	synctest.Wait()
	return c, nodes, locks
}

// TestCloseFreesMoreThanGoesOutInOneNodeTimeout: what Close sends must not wait in a queue for so
// long that it is given up unsent while the nodes could still do it in time.
func TestCloseFreesMoreThanGoesOutInOneNodeTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count, each = 5000, 100 * time.Microsecond // 500 ms: more than 1, less than 4 NodeTimeouts
		c, _, locks := holdMany(t, count, each)
		began := time.Now()
		var ended time.Duration // when the last lock's context ended
		context.AfterFunc(locks[count-1].Context(), func() { ended = time.Since(began) })
		if err := c.Close(); err != nil {
			t.Errorf("Close of %d locks after %v: %.300v", count, time.Since(began), err)
		}
		synctest.Wait()
		if ended > time.Millisecond {
			t.Errorf("a context ended %v after Close began, want at once: releases may wait,"+
				" contexts may not", ended)
		}
	})
}

// TestCloseWithNodesDownSaysSoOnce: with many locks its error must stay readable.
func TestCloseWithNodesDownSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 2000
		c, nodes, _ := holdMany(t, count, 0)
		for _, n := range nodes {
			n.off = true
		}
		err := c.Close()
		if !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("Close: got %.300v, want ErrNoQuorum", err)
		}
		if text := fmt.Sprint(err); len(text) > 1000 {
			t.Errorf("Close: %d bytes of error for %d locks, want a few lines: %.300s...",
				len(text), count, text)
		}
	})
}
