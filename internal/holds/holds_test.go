package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// TestHeldLocksCostNoGoroutine is a short form of the command.
func TestHeldLocksCostNoGoroutine(t *testing.T) {
	s := settings{locks: 500, callers: 50, ttl: 3 * time.Second, renewals: 1, nodes: 3,
		timeout: time.Second}
	var report strings.Builder
	ok, err := run(t.Context(), s, &report, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Errorf("a lock was lost, or goroutines grew with them:\n%s", report.String())
	}
}

func TestLedgerCountsFromThePlannedMoment(t *testing.T) {
	t.Parallel()
	g := newLedger(settings{locks: 2, ttl: 30 * time.Second})
	g.began = time.Now().Add(-time.Hour)
	g.entries[1].round = time.Hour - 12*time.Second // renewal planned 2 s ago
	g.round(redlock.Round{Op: "extend", Name: lockName(1), Took: time.Second})
	g.round(redlock.Round{Op: "extend", Name: lockName(1), Err: redlock.ErrNoQuorum})
	g.round(redlock.Round{Op: "extend", Name: "somebody's"})
	if g.extends.Load() != 1 || g.failed.Load() != 1 || g.leastRenewals() != 0 {
		t.Errorf("%d renewed, %d failed, least %d; want 1, 1 and 0, that of the other lock",
			g.extends.Load(), g.failed.Load(), g.leastRenewals())
	}
	for what, got := range map[string]time.Duration{
		"began late by 1s": g.late - time.Second,
		"done late by 2s":  g.done - 2*time.Second,
		"left 17.698s":     g.left - (29698*time.Millisecond - 12*time.Second),
	} {
		if got.Abs() > 500*time.Millisecond {
			t.Errorf("%s: off by %v", what, got)
		}
	}
}
