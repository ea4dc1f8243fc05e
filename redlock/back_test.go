package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

// A node that comes back with a new memory begins to wait when it is found to be back, not when it
// is next asked for a vote: a service that asks rarely would otherwise find it waiting each time.
func TestANodeThatIsBackBeginsToWaitAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := redlocktest.Start(t, 3)
		c, err := q.Client(redlock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range q.Nodes() {
			n.Stop()
		}
		if _, err := c.TryLock(t.Context(), "rare"); err == nil {
			t.Fatal("a lock without nodes")
		}
		for _, n := range q.Nodes() {
			n.StartEmpty()
		}
		time.Sleep(redlock.DefaultTTL + time.Second)
		if _, err := c.TryLock(t.Context(), "rare"); err != nil {
			t.Errorf("MaxTTL and a second after the nodes are back: %v", err)
		}
	})
}
