package bare

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// RunCallers is Run with callers that wait, as a library's do: each has a name of its own, which it
// locks and unlocks in turn, and waits each time until all nodes have answered. What is asked for
// while a node answers goes to it together afterwards; to nodes that are far away, while as many
// messages as there may be are under way to it. Nothing is decided, remembered, timed or
// freed, and no owner token is made: it is what batching for callers costs by itself.
func (b *Scripts) RunCallers(
	ctx context.Context, callers int, span time.Duration,
) (pairs float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	buses := make([]*bus, len(b.nodes))
	for i, client := range b.nodes {
		buses[i] = &bus{client: client, most: b.buses, fail: cancel}
	}
	var done atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		r := newRider(fmt.Sprintf("bare callers/%d/%d", callers, i))
		wg.Go(func() {
			for time.Since(began) < span && r.ride(ctx, buses, true) && r.ride(ctx, buses, false) {
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()), context.Cause(ctx)
}

// A rider is one caller with what it asks for.
type rider struct {
	key, token, channel, register any
	fencing                       uint64
	locks                         bool
	out                           atomic.Int32 // nodes that have not answered
	answered                      chan struct{}
}

func newRider(name string) *rider {
	return &rider{key: name, token: quorum.NewToken("bare"), channel: "ql:free:" + name,
		register: "ql:h:" + name, fencing: uint64(time.Now().UnixMicro()),
		answered: make(chan struct{}, 1)}
}

// ride asks all nodes, and reports whether they have answered.
func (r *rider) ride(ctx context.Context, buses []*bus, locks bool) bool {
	r.locks = locks
	r.fencing++
	r.out.Store(int32(len(buses)))
	for _, b := range buses {
		b.board(ctx, r)
	}
	select {
	case <-r.answered:
		return true
	case <-ctx.Done():
		return false
	}
}

// A bus goes to one node and back, with all who wait for it: several at once, where there may be so
// many.
type bus struct {
	client *redis.Client
	most   int // at once
	fail   context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	queue []*rider
	away  int // so many go
}

func (b *bus) board(ctx context.Context, r *rider) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, r)
	if b.away < b.most {
		b.away++
		go b.ride(ctx)
	}
}

// ride goes until nobody waits.
func (b *bus) ride(ctx context.Context) {
	var riders []*rider
	for {
		// Who was answered gets on again: with two turns of the scheduler a bus is as full as it gets,
		// and with none half as full.
		runtime.Gosched()
		runtime.Gosched()
		b.mu.Lock()
		riders, b.queue = b.queue, riders[:0]
		if len(riders) == 0 {
			b.away--
		}
		b.mu.Unlock()
		if len(riders) == 0 {
			return
		}
		if err := ask(ctx, b.client, riders); err != nil {
			b.fail(err)
			return
		}
		for _, r := range riders {
			if r.out.Add(-1) == 0 {
				r.answered <- struct{}{}
			}
		}
	}
}

// ask sends one pipeline with the fullest calls.
func ask(ctx context.Context, client *redis.Client, riders []*rider) error {
	pipe := client.Pipeline()
	var answers []*redis.StringSliceCmd
	send := func(c *call, sharedKeys, sharedArgs []any) error {
		if c.keys == nil {
			return nil
		}
		cmd := redis.NewStringSliceCmd(ctx, c.args(sharedKeys, sharedArgs)...)
		answers = append(answers, cmd)
		return pipe.Process(ctx, cmd)
	}
	for len(riders) > 0 {
		some := riders[:min(len(riders), script.MaxMany)]
		riders = riders[len(some):]
		lock, unlock := newCall(script.Acquire), newCall(script.Release)
		for _, r := range some {
			if r.locks {
				lock.add([]any{r.key, r.register}, []any{r.token, &r.fencing})
			} else {
				unlock.add([]any{r.key}, []any{r.token, r.channel})
			}
		}
		if err := send(lock, acquireKeys, acquireArgs); err != nil {
			return err
		}
		if err := send(unlock, nil, releaseArgs); err != nil {
			return err
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	return allDone(answers)
}
