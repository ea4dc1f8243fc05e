package integration

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What was exercised: a row is a test that passed and did something to containers, with all that it
// did to them. So "make integration" can say how much it was, and notice if it becomes less.

// rowsVariable names the file that the rows are written to.
const rowsVariable = "QUORUMLOCK_ROWS"

var rows struct {
	mu     sync.Mutex
	faults map[string]map[string]int // by row: how many nodes had which fault
}

// exercise makes a row of the test when it ends, of what was done to the nodes.
func exercise(t *testing.T, nodes []*Node) {
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		for _, n := range nodes {
			for _, what := range n.Faults() {
				exercised(t.Name(), what)
			}
		}
	})
}

func exercised(row, fault string) {
	rows.mu.Lock()
	defer rows.mu.Unlock()
	if rows.faults == nil {
		rows.faults = map[string]map[string]int{}
	}
	if rows.faults[row] == nil {
		rows.faults[row] = map[string]int{}
	}
	rows.faults[row][fault]++
}

// writeRows writes a line for each row and for the kinds of fault, and then the count of both.
func writeRows() error {
	path := os.Getenv(rowsVariable)
	if path == "" {
		return nil
	}
	rows.mu.Lock()
	defer rows.mu.Unlock()
	kinds := map[string]bool{}
	var text strings.Builder
	for _, row := range slices.Sorted(maps.Keys(rows.faults)) {
		fmt.Fprintf(&text, "%s:", row)
		for i, what := range slices.Sorted(maps.Keys(rows.faults[row])) {
			kinds[what] = true
			if i > 0 {
				text.WriteString(",")
			}
			fmt.Fprintf(&text, " %s x%d", what, rows.faults[row][what])
		}
		fmt.Fprintln(&text)
	}
	fmt.Fprintf(&text, "kinds of fault: %s\n", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	fmt.Fprintf(&text, "%d rows with faults of %d kinds\n", len(rows.faults), len(kinds))
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// endRows is writeRows after tests that ended with this status.
func endRows(status int) int {
	if err := writeRows(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cmp.Or(status, 1)
	}
	return status
}
