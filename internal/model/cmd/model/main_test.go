package main

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/model"
)

func TestRunPrintsALineForEachRow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	status := run(&out, selectRows(model.Table(), "guard/flush/new by its uptime"), true)
	if status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	for _, want := range []string{
		"ok    guard/flush/new by its uptime (G4a)", "VIOLATION: a vote for a rival", "53 states",
		"server 1 is FLUSHED", "1 rows, 0 not as expected",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestRunFailsIfARowDoesNotComeOutAsExpected(t *testing.T) {
	t.Parallel()
	rows := selectRows(model.Table(), "guard/flush/new by its uptime")
	rows[0].Want.Violation = ""
	var out strings.Builder
	if status := run(&out, rows, false); status != 1 || !strings.HasPrefix(out.String(), "WRONG") {
		t.Errorf("exit status %d, want 1, after\n%s", status, out.String())
	}
}

func TestRunFailsIfThereIsNoSuchRow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if status := run(&out, selectRows(model.Table(), "no such thing"), false); status != 2 {
		t.Errorf("exit status %d, want 2", status)
	}
}

func TestSelectRows(t *testing.T) {
	t.Parallel()
	table := model.Table()
	for name, want := range map[string]int{
		"":                               len(table),
		"vote/3 nodes, 2 contenders":     1, // though others begin like it
		"guard/restart, snapshot/script": 2,
	} {
		if got := len(selectRows(table, name)); got != want {
			t.Errorf("%q selects %d rows, want %d", name, got, want)
		}
	}
}
