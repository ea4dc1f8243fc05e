package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// run goes through all episodes and reports whether what was seen is what should be.
func run(ctx context.Context, s settings, out, progress io.Writer) (ok bool, err error) {
	logging.Disable() // go-redis writes a line for each node that it finds down
	var clusters []*cluster
	defer func() {
		for _, c := range clusters {
			err = errors.Join(err, c.close())
		}
	}()
	for i := range s.clusters {
		c, err := newCluster(ctx, s, uint64(i))
		if err != nil {
			return false, err
		}
		clusters = append(clusters, c)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began := time.Now()
	told := &teller{to: progress, of: s.count, began: began, clusters: clusters}
	var left atomic.Int64
	left.Store(int64(s.count))
	var running sync.WaitGroup
	for _, c := range clusters {
		running.Go(func() {
			if err := c.run(ctx, &left, told.episode); err != nil {
				stop(err)
			}
			if c.ledger.violated() && s.expect {
				stop(errFound)
			}
		})
	}
	running.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errFound) {
		return false, cause
	}
	violations := report(out, s, clusters, time.Since(began))
	return (violations > 0) == s.expect, nil
}

// errFound ends a run that has found what it was to find.
var errFound = errors.New("found")

// A teller says how far the run is, every fifty episodes.
type teller struct {
	to       io.Writer
	of       int
	began    time.Time
	clusters []*cluster
	done     atomic.Int64
}

func (t *teller) episode() {
	n := t.done.Add(1)
	if n%50 != 0 {
		return
	}
	var all counts
	for _, c := range t.clusters {
		all.add(c.ledger.sum())
	}
	fmt.Fprintf(t.to, "%d of %d episodes after %v: %d locks won, %d lost, %d double holds\n", n, t.of,
		time.Since(t.began).Round(time.Second), all.won, all.lost, all.doubles)
}
