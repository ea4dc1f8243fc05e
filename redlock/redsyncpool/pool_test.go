package redsyncpool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/redlock/redsyncpool"
)

// clientsOf connects to these nodes with default options, as users' clients have them.
func clientsOf(t *testing.T, addrs []string) (clients []*goredis.Client) {
	t.Helper()
	for _, addr := range addrs {
		client := goredis.NewClient(&goredis.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	return clients
}

func poolsOf(t *testing.T, clients ...*goredis.Client) []redis.Pool {
	t.Helper()
	pools, err := redsyncpool.New(clients...)
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

// oneConn is a conn of a node inside this process.
func oneConn(t *testing.T) (redis.Conn, *goredis.Client) {
	t.Helper()
	client := clientsOf(t, embedded.ForTest(t, 1).Addrs())[0]
	c, err := poolsOf(t, client)[0].Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, client
}

func TestFaultsOfTheClientsAreAllNamed(t *testing.T) {
	t.Parallel()
	if _, err := redsyncpool.New(); err == nil {
		t.Error("no client is no error")
	}
	a := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:0"})
	t.Cleanup(func() { a.Close() })
	pools, err := redsyncpool.New(a, nil, a)
	if err == nil || pools != nil {
		t.Fatalf("got %v, %v; want no pools and an error", pools, err)
	}
	for _, want := range []string{"client 2 is nil", "clients 1 and 3 are the same"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
}

func TestCommandsAnswerAsRedsyncExpects(t *testing.T) {
	t.Parallel()
	c, client := oneConn(t)
	value, err := c.Get("none")
	wantAnswer(t, "get of nothing", value, err, "")
	ok, err := c.SetNX("k", "mine", time.Minute)
	wantAnswer(t, "set of a free name", ok, err, true)
	ok, err = c.SetNX("k", "other", time.Minute)
	wantAnswer(t, "set of a taken name", ok, err, false)
	value, err = c.Get("k")
	wantAnswer(t, "get", value, err, "mine")
	left, err := c.PTTL("k")
	if err != nil || left <= 0 || left > time.Minute {
		t.Errorf("pttl: %v, %v; want up to a minute", left, err)
	}
	ok, err = c.Set("k", "new")
	wantAnswer(t, "set", ok, err, true)
	if got := client.Get(t.Context(), "k").Val(); got != "new" {
		t.Errorf("the node has %q, want %q", got, "new")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func wantAnswer[T comparable](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
	}
}

func TestAKeyWithoutAnEndIsRefused(t *testing.T) {
	t.Parallel()
	c, client := oneConn(t)
	if ok, err := c.SetNX("k", "v", 0); ok || err == nil {
		t.Errorf("got %v, %v; want an error", ok, err)
	}
	if n := client.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("the key was set")
	}
}

func TestScriptsRunAlsoWhereTheirCacheIsGone(t *testing.T) {
	t.Parallel()
	c, client := oneConn(t)
	const text = "return KEYS[1] .. ARGV[1]"
	hash := client.ScriptLoad(t.Context(), text).Val()
	for what, tc := range map[string]struct {
		script *redis.Script
		args   []any
	}{
		"its own count of keys": {redis.NewScript(1, text, hash), []any{"k", "v"}},
		"a count in front":      {redis.NewScript(-1, text, hash), []any{1, "k", "v"}},
	} {
		for _, flushed := range []bool{false, true} {
			if flushed {
				client.ScriptFlush(t.Context())
			}
			got, err := c.Eval(tc.script, tc.args...)
			wantAnswer(t, what, got, err, any("kv"))
		}
		client.ScriptFlush(t.Context())
		if err := c.ScriptLoad(tc.script); err != nil {
			t.Error(err)
		}
		if there := client.ScriptExists(t.Context(), hash).Val(); len(there) != 1 || !there[0] {
			t.Errorf("loaded: %v, want the script", there)
		}
	}
	nothing, err := c.Eval(redis.NewScript(1, "return redis.call('GET', KEYS[1])", "unknown"), "none")
	wantAnswer(t, "nil of a script", nothing, err, any(nil))
}

func TestAScriptCalledWronglyIsAnErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	c, _ := oneConn(t)
	for what, tc := range map[string]struct {
		count int
		args  []any
	}{
		"too few":                  {2, []any{"k"}},
		"a number as a key":        {1, []any{7}},
		"no count in front":        {-1, nil},
		"a name instead of it":     {-1, []any{"k"}},
		"a negative one in front":  {-1, []any{-2, "k"}},
		"more in front than there": {-1, []any{3, "k"}},
	} {
		if got, err := c.Eval(redis.NewScript(tc.count, "return 1", "x"), tc.args...); err == nil {
			t.Errorf("%s: got %v, want an error", what, got)
		}
	}
}

// A node that accepts connections and never answers, as a frozen one does.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) // the backlog takes connections; nobody reads them
	return listener.Addr().String()
}

// redis/go-redis 2145: a client with default options waits for its own time-outs, times retries,
// and not for the context.
func TestACommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := poolsOf(t, clientsOf(t, []string{silent(t)})...)[0]
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, err := pool.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if ok, err := c.SetNX("k", "v", time.Minute); ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v; want the context's end", ok, err)
	}
	if took := time.Since(began); took > 2*time.Second { // go-redis itself: 3 s and more
		t.Errorf("it took %v, want about 100 ms", took)
	}
	if _, err := c.Get("k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the end: %v, want the context's end", err)
	}
}

// Without a context the client's own time-outs bound a command.
func TestNoContextIsAllowed(t *testing.T) {
	t.Parallel()
	client := clientsOf(t, embedded.ForTest(t, 1).Addrs())[0]
	var none context.Context // redsync allows it
	c, err := poolsOf(t, client)[0].Get(none)
	if err != nil {
		t.Fatal(err)
	}
	ok, err := c.SetNX("k", "v", time.Minute)
	wantAnswer(t, "set", ok, err, true)
}

// One node of three is silent: redsync still locks, extends, and unlocks.
func TestASilentMinorityCostsNoLock(t *testing.T) {
	t.Parallel()
	addrs := append(embedded.ForTest(t, 2).Addrs(), silent(t))
	rs := redsync.New(poolsOf(t, clientsOf(t, addrs)...)...)
	began := time.Now()
	for i := range 3 {
		m := rs.NewMutex(fmt.Sprint("job ", i), redsync.WithExpiry(8*time.Second))
		if err := m.Lock(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		if ok, err := m.ExtendContext(ctx); !ok {
			t.Errorf("extend: %v", err)
		}
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 400*time.Millisecond)
		if ok, err := m.UnlockContext(ctx); !ok {
			t.Errorf("unlock: %v", err)
		}
		cancel()
	}
	t.Logf("three times all of it: %v", time.Since(began).Round(time.Millisecond))
}
