package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// bareScripts is the ceiling: the nodes' scripts in the fullest calls, pipelined, in a loop that
// decides nothing, keeps nothing and waits for no other node. No library that asks the nodes for
// the same can be faster.
type bareScripts struct {
	nodes []*redis.Client
}

// openBare connects, and fills the nodes' script caches.
func openBare(ctx context.Context, addrs []string) (*bareScripts, error) {
	b := &bareScripts{}
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
		b.nodes = append(b.nodes, client)
		for _, s := range []*script.Script{script.Acquire, script.Release} {
			if err := client.ScriptLoad(ctx, s.Many.Text).Err(); err != nil {
				return nil, errors.Join(err, b.close())
			}
		}
	}
	return b, nil
}

func (b *bareScripts) close() error { return closeAll(b.nodes) }

// run locks and unlocks as many names as there are callers, at each node for about span. A pair is
// done when all nodes have done it: it is counted as a part for each.
func (b *bareScripts) run(ctx context.Context, callers int, span time.Duration) work {
	var parts atomic.Int64
	var first sync.Once
	var w work
	began := time.Now()
	var wg sync.WaitGroup
	for _, client := range b.nodes {
		wg.Go(func() {
			rounds := newBareRounds(callers)
			for time.Since(began) < span && ctx.Err() == nil {
				if err := rounds.run(ctx, client); err != nil {
					first.Do(func() { w.err = err })
					return
				}
				parts.Add(int64(callers))
			}
		})
	}
	wg.Wait()
	w.pairs = float64(parts.Load()) / float64(len(b.nodes))
	return w
}

// bareRounds are the calls for some names, made once.
type bareRounds struct {
	locks, unlocks [][]any
	fencing        []*uint64 // proposed; grows each time
}

func newBareRounds(names int) *bareRounds {
	r := &bareRounds{}
	for from := 0; from < names; from += script.MaxMany {
		lock, unlock := &bareCall{script: script.Acquire}, &bareCall{script: script.Release}
		for i := from; i < min(from+script.MaxMany, names); i++ {
			name, token := fmt.Sprintf("bare/%d/%d", names, i), quorum.NewToken("bare")
			fencing := uint64(time.Now().UnixMicro())
			r.fencing = append(r.fencing, &fencing)
			lock.add([]any{name, "ql:h:" + name}, []any{token, &fencing})
			unlock.add([]any{name}, []any{token, "ql:free:" + name})
		}
		week := 7 * 24 * time.Hour
		r.locks = append(r.locks, lock.args([]any{"ql:node"}, []any{"10000", "15000000",
			(week / 2).Microseconds(), week.Milliseconds(), "", "30000", "30000"}))
		r.unlocks = append(r.unlocks, unlock.args(nil, []any{"0"}))
	}
	return r
}

// run sends one pipeline that locks and one that unlocks, and sees that every lock was granted.
func (r *bareRounds) run(ctx context.Context, client *redis.Client) error {
	for _, fencing := range r.fencing {
		*fencing++
	}
	for _, calls := range [][][]any{r.locks, r.unlocks} {
		pipe := client.Pipeline()
		var answers []*redis.StringSliceCmd
		for _, args := range calls {
			c := redis.NewStringSliceCmd(ctx, args...)
			answers = append(answers, c)
			if err := pipe.Process(ctx, c); err != nil {
				return err
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for _, c := range answers {
			for _, reply := range c.Val()[1:] {
				if reply == "" || reply[0] != script.Done {
					return fmt.Errorf("bare scripts: answered %q", reply)
				}
			}
		}
	}
	return nil
}

// A bareCall is a call for many locks in the making.
type bareCall struct {
	script              *script.Script
	keys, others        []any // of the first lock, of those after it
	ownArgs, othersArgs []any
}

func (c *bareCall) add(keys, args []any) {
	if c.keys == nil {
		c.keys, c.ownArgs = keys, args
		return
	}
	c.others, c.othersArgs = append(c.others, keys...), append(c.othersArgs, args...)
}

// args are what goes over the wire, with the keys and arguments that all locks share.
func (c *bareCall) args(sharedKeys, sharedArgs []any) []any {
	keys := len(c.keys) + len(sharedKeys) + len(c.others)
	all := []any{"evalsha", c.script.Many.SHA, keys}
	for _, part := range [][]any{c.keys, sharedKeys, c.others, c.ownArgs, sharedArgs, c.othersArgs} {
		all = append(all, part...)
	}
	return all
}
