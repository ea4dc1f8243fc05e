// Package bare is the ceiling that libraries are measured against: the nodes' scripts in the fullest
// calls, pipelined, in a loop that decides nothing, keeps nothing and waits for no other node. No
// library that asks the nodes for the same can be faster.
package bare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// Scripts are connections to the nodes.
type Scripts struct {
	nodes []*redis.Client
	buses int // that may be under way to a node at once
}

// A Dialer connects to a node, as redis.Options.Dialer does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// farBuses are the buses to a node from afar: with one, callers wait for it to come back as long again
// as they ride. More than 8 made nothing faster, with 64 and with 512 callers.
const farBuses = 16

// Open connects, over dial or, if that is nil, directly, and fills the nodes' script caches. What dial
// leads to is taken to be far away: see RunCallers.
func Open(ctx context.Context, addrs []string, dial Dialer) (*Scripts, error) {
	b := &Scripts{buses: 1}
	if dial != nil {
		b.buses = farBuses
	}
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, Protocol: 2,
			PoolSize: 2 * b.buses})
		b.nodes = append(b.nodes, client)
		if err := connect(ctx, client, b.buses); err != nil {
			return nil, errors.Join(err, b.Close())
		}
		for _, s := range []*script.Script{script.Acquire, script.Release} {
			if err := client.ScriptLoad(ctx, s.Many.Text).Err(); err != nil {
				return nil, errors.Join(err, b.Close())
			}
		}
	}
	return b, nil
}

// connect opens connections, so that none is opened while something is measured.
func connect(ctx context.Context, client *redis.Client, count int) error {
	errs := make([]error, count)
	conns := make([]*redis.Conn, count)
	var wg sync.WaitGroup
	for i := range conns {
		conns[i] = client.Conn()
		wg.Go(func() { errs[i] = conns[i].Ping(ctx).Err() })
	}
	wg.Wait()
	for _, conn := range conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// Close ends the connections.
func (b *Scripts) Close() error {
	var errs []error
	for _, client := range b.nodes {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// Run locks and unlocks as many names as there are callers, at each node for about span or until ctx
// ends, and says how many pairs that were, and the first error. A pair is done when all nodes have
// done it: it is counted as a part for each.
func (b *Scripts) Run(
	ctx context.Context, callers int, span time.Duration,
) (pairs float64, err error) {
	var parts atomic.Int64
	var first sync.Once
	began := time.Now()
	var wg sync.WaitGroup
	for _, client := range b.nodes {
		wg.Go(func() {
			all := newRounds(callers)
			for time.Since(began) < span && ctx.Err() == nil {
				if failed := all.run(ctx, client); failed != nil {
					first.Do(func() { err = failed })
					return
				}
				parts.Add(int64(callers))
			}
		})
	}
	wg.Wait()
	return float64(parts.Load()) / float64(len(b.nodes)), err
}

// rounds are the calls for some names, made once.
type rounds struct {
	locks, unlocks [][]any
	fencing        []*uint64 // proposed; grows each time
}

func newRounds(names int) *rounds {
	r := &rounds{}
	for from := 0; from < names; from += script.MaxMany {
		lock := newCall(script.Acquire)
		unlock := newCall(script.Release)
		for i := from; i < min(from+script.MaxMany, names); i++ {
			name, token := fmt.Sprintf("bare/%d/%d", names, i), quorum.NewToken("bare")
			fencing := uint64(time.Now().UnixMicro())
			r.fencing = append(r.fencing, &fencing)
			lock.add([]any{name, "ql:h:" + name}, []any{token, &fencing})
			unlock.add([]any{name}, []any{token, "ql:free:" + name})
		}
		r.locks = append(r.locks, lock.args(acquireKeys, acquireArgs))
		r.unlocks = append(r.unlocks, unlock.args(nil, releaseArgs))
	}
	return r
}

// run sends one pipeline that locks and one that unlocks, and sees that every lock was granted.
func (r *rounds) run(ctx context.Context, client *redis.Client) error {
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
		if err := allDone(answers); err != nil {
			return err
		}
	}
	return nil
}

// allDone wants every lock granted, or freed.
func allDone(answers []*redis.StringSliceCmd) error {
	for _, c := range answers {
		for _, reply := range c.Val()[1:] {
			if reply == "" || reply[0] != script.Done {
				return fmt.Errorf("bare scripts: answered %q", reply)
			}
		}
	}
	return nil
}

const week = 7 * 24 * time.Hour

// What all locks have in common; the restart guard is off.
var (
	acquireKeys = []any{"ql:node"}
	acquireArgs = []any{"10000", "15000000", (week / 2).Microseconds(), week.Milliseconds(), "",
		"30000", "30000"}
	releaseArgs = []any{"0"}
)

// A call is a call for many locks in the making.
type call struct {
	script              *script.Script
	keys, others        []any // of the first lock, of those after it
	ownArgs, othersArgs []any
}

func newCall(s *script.Script) *call { return &call{script: s} }

func (c *call) add(keys, args []any) {
	if c.keys == nil {
		c.keys, c.ownArgs = keys, args
		return
	}
	c.others, c.othersArgs = append(c.others, keys...), append(c.othersArgs, args...)
}

// args are what goes over the wire, with the keys and arguments that all locks share.
func (c *call) args(sharedKeys, sharedArgs []any) []any {
	keys := len(c.keys) + len(sharedKeys) + len(c.others)
	all := []any{"evalsha", c.script.Many.SHA, keys}
	for _, part := range [][]any{c.keys, sharedKeys, c.others, c.ownArgs, sharedArgs, c.othersArgs} {
		all = append(all, part...)
	}
	return all
}
