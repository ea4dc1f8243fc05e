package redsyncpool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// The steps of docs/migrating-from-redsync.md, one after the other.

// A worker is a replica that takes turn after turn until it is replaced.
type worker struct {
	turns atomic.Int64
	ended atomic.Bool
	gone  sync.WaitGroup
}

// work lets a program take its turns.
func work(
	t *testing.T, program func(context.Context, string, int, func()) error, use func(),
) *worker {
	w := &worker{}
	ctx := context.WithoutCancel(t.Context()) // it ends by itself, turn by turn
	w.gone.Go(func() {
		for !w.ended.Load() && !t.Failed() {
			if err := program(ctx, "invoices", 1, use); err != nil {
				t.Error(err)
			}
			w.turns.Add(1)
		}
	})
	t.Cleanup(w.end)
	return w
}

// end lets its turn end, as a replica is replaced.
func (w *worker) end() {
	w.ended.Store(true)
	w.gone.Wait()
}

// goOn wants each of them to take some more turns.
func goOn(t *testing.T, workers []*worker) {
	t.Helper()
	const turns = 5
	began := time.Now()
	defer func() { t.Logf("%d turns each: %v", turns, time.Since(began).Round(time.Millisecond)) }()
	for i, w := range workers {
		until := w.turns.Load() + turns
		for end := time.Now().Add(time.Minute); w.turns.Load() < until; {
			if time.Now().After(end) || t.Failed() {
				t.Fatalf("replica %d has not had %d turns more", i, turns)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Nodes that redlock never met, under redsync's load all the time: nobody admits them. The first
// new replica waits MaxTTL for their votes while the old ones go on; it is taken back, and then all
// are replaced. Never two at once.
func TestARollingMigration(t *testing.T) {
	t.Parallel()
	const expiry = 5 * time.Second
	addrs := redisproc.ForTest(t, 5).Addrs()
	var shared resource
	old := func() *worker { // as it was before: not even redsyncpool
		var pools []redis.Pool
		for _, client := range clientsOf(t, addrs) {
			pools = append(pools, goredis.NewPool(client))
		}
		p := replica{other: redsync.New(pools...), expiry: expiry}
		return work(t, p.oldProgram, shared.use)
	}
	replicas := []*worker{old(), old(), old()}
	goOn(t, replicas)

	replicas[0].end()
	p := start(t, addrs, expiry)
	met := time.Now()
	_, err := p.ours.TryLock(t.Context(), "nobody's")
	if !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("at first TryLock says %v, want ErrNoQuorum", err)
	}
	replicas[0] = work(t, p.newProgram, shared.use)
	goOn(t, replicas[1:])
	if turns := replicas[0].turns.Load(); time.Since(met) < expiry && turns > 0 {
		t.Errorf("%d turns of redlock before it knew the nodes for MaxTTL, %v", turns, expiry)
	}
	goOn(t, replicas)

	replicas[0].end() // the way back
	replicas[0] = old()
	goOn(t, replicas)

	for i := range replicas {
		replicas[i].end()
		replicas[i] = work(t, start(t, addrs, expiry).newProgram, shared.use)
		goOn(t, replicas)
	}
	if n := shared.doubles.Load(); n > 0 {
		t.Errorf("%d times two were in it, want never", n)
	}
}
