package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A tally is what became of a number of elections of one kind.
type tally struct {
	elections int
	none      int // nobody won
	several   int // more than one won, and held the lock at the same time
	held      int // losers that were told who had won
	unsettled int // losers that were told that the votes were split
	took      []time.Duration
	errs      []error // of the elections without a winner, and what freeing came to
}

// quantile is the time within which that part of the elections that were won had their winner.
func (t *tally) quantile(part float64) time.Duration {
	if len(t.took) == 0 {
		return 0
	}
	slices.Sort(t.took)
	return t.took[min(int(part*float64(len(t.took))), len(t.took)-1)]
}

// bid is what one contender's try came to.
type bid struct {
	free func() error
	err  error
	took time.Duration
}

// elect lets all replicas try for one name at the same moment. Whoever wins keeps the lock until
// all have an answer, so that a second winner is one who holds it beside the first.
func elect(ctx context.Context, lib library, replicas []*replica, name string, t *tally) {
	bids := make([]bid, len(replicas))
	start := make(chan struct{})
	var began time.Time // written before start is closed
	var ready, done sync.WaitGroup
	for i, r := range replicas {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			b := &bids[i]
			b.free, b.err = lib.try(ctx, r, name)
			b.took = time.Since(began)
		})
	}
	ready.Wait()
	began = time.Now()
	close(start)
	done.Wait()
	t.count(name, bids)
	for _, b := range bids {
		if b.err == nil {
			if err := b.free(); err != nil {
				t.errs = append(t.errs, err)
			}
		}
	}
}

func (t *tally) count(name string, bids []bid) {
	t.elections++
	winners := 0
	var losses []error
	for _, b := range bids {
		switch {
		case b.err == nil:
			winners++
			t.took = append(t.took, b.took)
			continue
		case errors.Is(b.err, redlock.ErrHeld):
			t.held++
		case errors.Is(b.err, redlock.ErrNoQuorum):
			t.unsettled++
		}
		losses = append(losses, b.err)
	}
	switch {
	case winners == 0:
		t.none++
		t.errs = append(t.errs, fmt.Errorf("%s: nobody won: %w", name, errors.Join(losses...)))
	case winners > 1:
		t.several++
		t.errs = append(t.errs, fmt.Errorf("%s: %d won", name, winners))
	}
}
