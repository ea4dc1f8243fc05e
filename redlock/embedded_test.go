package redlock_test

import (
	"log/slog"
	"testing"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/redlock"
)

// TestMiniredisVotesWithoutGuard: miniredis has no INFO replication, so there is no memory to
// guard; users' tests that run on it need not switch the guard off.
func TestMiniredisVotesWithoutGuard(t *testing.T) {
	t.Parallel()
	c, err := redlock.New(redlock.Config{Addrs: embedded.ForTest(t, 3).Addrs(),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.TryLock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	for _, node := range c.Nodes(t.Context()) {
		if !node.GuardOff {
			t.Errorf("%s: the guard is said to be on, want off", node.Node)
		}
	}
}
