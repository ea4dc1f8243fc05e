package schedule

import (
	"context"
	"time"
)

// awaitInstant reads which instant of a list is due, on a goroutine of its own: while gocron stops
// it answers only after a second, and a Lock has to return as soon as its context ends.
func awaitInstant(
	ctx context.Context, nextRuns func(int) ([]time.Time, error), now func() time.Time,
) (finding, error) {
	if err := ctx.Err(); err != nil {
		return finding{}, err
	}
	type result struct {
		finding finding
		err     error
	}
	got := make(chan result, 1)
	go func() {
		f, err := findInstant(nextRuns, now())
		got <- result{f, err}
	}()
	select {
	case r := <-got:
		return r.finding, r.err
	case <-ctx.Done():
		return finding{}, ctx.Err()
	}
}
