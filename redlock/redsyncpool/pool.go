package redsyncpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4/redis"
	goredis "github.com/redis/go-redis/v9"
)

// New returns a pool for each client, in their order, for redsync.New. The clients are those that
// go into redlock's Config.Clients, one for each independent node; they stay open and yours. All
// faults, clients that are nil or there twice, are in one error. It does not connect. The pools may
// be used by any number of goroutines.
//
// A command returns when its context ends, whatever time-outs and retries the client has: redsync
// bounds its rounds by contexts, and a go-redis client with default options does not heed those
// while it waits for an answer. A command that was given up may still be carried out.
func New(clients ...*goredis.Client) ([]redis.Pool, error) {
	var faults []error
	if len(clients) == 0 {
		faults = append(faults, errors.New("redsyncpool: no client"))
	}
	pools := make([]redis.Pool, len(clients))
	for i, client := range clients {
		if client == nil {
			faults = append(faults, fmt.Errorf("redsyncpool: client %d is nil", i+1))
		}
		for j, other := range clients[:i] {
			if client != nil && client == other {
				faults = append(faults, fmt.Errorf(
					"redsyncpool: clients %d and %d are the same; it would vote twice", j+1, i+1))
			}
		}
		pools[i] = pool{client}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return pools, nil
}

// A pool is one node, as redsync wants it.
type pool struct{ client *goredis.Client }

// Get does not block: go-redis has its own pool below. Without a context, as redsync allows, the
// client's time-outs are the only bound.
func (p pool) Get(ctx context.Context) (redis.Conn, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	return &conn{client: p.client, ctx: ctx}, nil
}

// A conn is a node for the span of one context.
type conn struct {
	client *goredis.Client
	ctx    context.Context
}

func (c *conn) Get(name string) (string, error) {
	value, err := bounded(c.ctx, func() (string, error) { return c.client.Get(c.ctx, name).Result() })
	return value, orNil(err)
}

func (c *conn) Set(name, value string) (bool, error) {
	reply, err := bounded(c.ctx, func() (string, error) {
		return c.client.Set(c.ctx, name, value, 0).Result()
	})
	return reply == "OK", err
}

// SetNX is a whole SET NX PX and not go-redis' SetNX, which says seconds (EX) where it can: this is
// the command that redlock's scripts use, and docs/protocol.md tells.
func (c *conn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	if expiry < time.Millisecond {
		return false, fmt.Errorf("redsyncpool: expiry %v: at least 1 ms, a key needs an end", expiry)
	}
	reply, err := bounded(c.ctx, func() (string, error) {
		return c.client.Do(c.ctx, "set", name, value, "px", expiry.Milliseconds(), "nx").Text()
	})
	return reply == "OK", orNil(err)
}

func (c *conn) PTTL(name string) (time.Duration, error) {
	return bounded(c.ctx, func() (time.Duration, error) { return c.client.PTTL(c.ctx, name).Result() })
}

// Eval sends the script's hash, and its text where the node does not know that, as after a restart
// or SCRIPT FLUSH.
func (c *conn) Eval(script *redis.Script, keysAndArgs ...any) (any, error) {
	keys, args, err := split(script.KeyCount, keysAndArgs)
	if err != nil {
		return nil, err
	}
	value, err := bounded(c.ctx, func() (any, error) {
		value, err := c.client.EvalSha(c.ctx, script.Hash, keys, args...).Result()
		if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			return c.client.Eval(c.ctx, script.Src, keys, args...).Result()
		}
		return value, err
	})
	return value, orNil(err)
}

// split takes the keys from the front. Of a script that was made with a negative count, the caller
// gives the count first.
func split(count int, keysAndArgs []any) (keys []string, args []any, err error) {
	if count < 0 {
		given, ok := 0, false
		if len(keysAndArgs) > 0 {
			given, ok = keysAndArgs[0].(int)
		}
		if !ok || given < 0 {
			return nil, nil, errors.New("redsyncpool: a script without a count of keys needs one in front")
		}
		count, keysAndArgs = given, keysAndArgs[1:]
	}
	if count > len(keysAndArgs) {
		return nil, nil, fmt.Errorf("redsyncpool: %d keys for a script of %d", len(keysAndArgs), count)
	}
	for _, key := range keysAndArgs[:count] {
		name, ok := key.(string)
		if !ok {
			return nil, nil, fmt.Errorf("redsyncpool: a key is a %T, want a string", key)
		}
		keys = append(keys, name)
	}
	return keys, keysAndArgs[count:], nil
}

// ScriptLoad puts the script into the node's cache. Its hash is left as it is: scripts are shared
// by goroutines, and a hash that redsync did not compute itself is of no use to it.
func (c *conn) ScriptLoad(script *redis.Script) error {
	_, err := bounded(c.ctx, func() (string, error) {
		return c.client.ScriptLoad(c.ctx, script.Src).Result()
	})
	return err
}

// Close has nothing to do: connections are go-redis' own.
func (c *conn) Close() error { return nil }

// orNil: redsync wants an empty value where Redis says nil.
func orNil(err error) error {
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	return err
}

// bounded runs a command and returns when it has an answer or ctx is done. The goroutine ends with
// the client's own time-outs and retries, or when the client is closed.
func bounded[T any](ctx context.Context, command func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil {
		return command()
	}
	got := make(chan answer, 1)
	go func() {
		value, err := command()
		got <- answer{value, err}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
