package bare

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/delay"
	"github.com/quorumlock/quorumlock/internal/fleet"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	nodes, err := fleet.StartInside(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	scripts, err := Open(ctx, nodes.Addrs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer scripts.Close()
	runs := map[string]func(context.Context, int, time.Duration) (float64, error){
		"Run": scripts.Run, "RunCallers": scripts.RunCallers}
	for name, run := range runs {
		for _, callers := range []int{1, 3, 100} { // 100 take more than one call
			if pairs, err := run(ctx, callers, 50*time.Millisecond); err != nil || pairs == 0 {
				t.Errorf("%s of %d: got %g pairs and %v", name, callers, pairs, err)
			}
		}
	}
	for _, client := range scripts.nodes {
		for _, pattern := range []string{"bare/*", "bare callers/*"} {
			if left, err := client.Keys(ctx, pattern).Result(); err != nil || len(left) > 0 {
				t.Errorf("left at the end: %q, %v", left, err)
			}
		}
		// A lock that is not granted ends a run: what it measures would be something else.
		for _, name := range []string{"bare/2/1", "bare callers/2/1"} {
			if err := client.Set(ctx, name, "another's", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, run := range runs {
		if _, err := run(ctx, 2, time.Minute); err == nil {
			t.Errorf("%s: a lock was not granted, and that is no error", name)
		}
	}
}

func TestFromAfarThereAreConnectionsForSeveralMessages(t *testing.T) {
	t.Parallel()
	nodes, err := fleet.StartInside(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	far := delay.New(10*time.Millisecond, 10*time.Millisecond, 1)
	scripts, err := Open(t.Context(), nodes.Addrs(), far.Dial)
	if err != nil {
		t.Fatal(err)
	}
	defer scripts.Close()
	const callers, span = 8, 400 * time.Millisecond
	pairs, err := scripts.RunCallers(t.Context(), callers, span)
	// Two round trips a pair.
	if most := callers * float64(span/(40*time.Millisecond)+1); err != nil || pairs > most || pairs == 0 {
		t.Errorf("%g pairs and %v, want some, at most %g", pairs, err, most)
	}
	for _, client := range scripts.nodes {
		if got := client.PoolStats().TotalConns; got < farBuses {
			t.Errorf("%d connections to a node, want %d", got, farBuses)
		}
	}
}
