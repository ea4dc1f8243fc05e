package main

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestARenewalIsLateFromItsPlannedMoment(t *testing.T) {
	t.Parallel()
	const second = time.Second
	n := newRenewals(2, 9*second) // renewed every 3 s
	n.note(0, false, 2*second, second)
	n.note(0, true, 5*second, second) // planned at 4 s, there at 5 s
	n.note(1, false, 5*second, 0)
	n.note(1, true, 8*second, 0) // planned at 8 s
	n.note(0, true, 9*second, second)
	if got := n.longest(); got != 2*second {
		t.Errorf("the latest renewal is %v late, want 2 s: planned at 7 s, there at 9 s", got)
	}
	if got := n.renewed.Load(); got != 3 {
		t.Errorf("%d renewals, want 3", got)
	}
}

func TestOnlyGoodRoundsOfOurLocksAreNoted(t *testing.T) {
	t.Parallel()
	n := newRenewals(1, time.Second)
	for _, r := range []redlock.Round{
		{Op: "extend", Name: "warm up"}, {Op: "unlock", Name: holdingPrefix + "0"},
		{Op: "extend", Name: holdingPrefix + "0", Err: redlock.ErrNoQuorum},
		{Op: "extend", Name: holdingPrefix + "x"},
	} {
		n.round(r)
	}
	if got := n.renewed.Load(); got != 0 {
		t.Errorf("%d renewals, want none", got)
	}
	n.round(redlock.Round{Op: "extend", Name: holdingPrefix + "0"})
	if got := n.renewed.Load(); got != 1 {
		t.Errorf("%d renewals, want 1", got)
	}
}
