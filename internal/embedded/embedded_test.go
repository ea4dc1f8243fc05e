package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
)

// connect returns a client that tells every error at once.
func connect(t *testing.T, n *embedded.Node) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// lifetime sets a key with a TTL and asks until it is gone; it returns the time from before it
// was set until then.
func lifetime(ctx context.Context, c *redis.Client, key string, ttl time.Duration) (time.Duration, error) {
	sentAt := time.Now()
	if err := c.Set(ctx, key, "v", ttl).Err(); err != nil {
		return 0, err
	}
	for {
		err := c.Get(ctx, key).Err()
		if errors.Is(err, redis.Nil) {
			return time.Since(sentAt), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

func TestKeysExpireByThemselvesAndNotTooEarly(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	c := connect(t, n)
	const ttl = 60 * time.Millisecond
	var wg sync.WaitGroup
	for i := range 16 { // at once, so that commands wait for each other
		wg.Go(func() {
			got, err := lifetime(t.Context(), c, fmt.Sprint("k", i), ttl)
			if err != nil || got < ttl {
				t.Errorf("a key lived for %v (%v), want at least %v", got, err, ttl)
			}
		})
	}
	wg.Wait()
	if got := n.Redis().Keys(); len(got) > 0 {
		t.Errorf("seen from inside: got %v, want no key", got)
	}
}

func TestKeysExpireAlsoWhileNoCommandComesIn(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	must(t, connect(t, n).Set(t.Context(), "k", "v", 20*time.Millisecond).Err())
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n.Redis().Exists("k") {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the key is still there")
		}
	}
}

func TestTimeMovesInScriptsAndStandsStillWithinOne(t *testing.T) {
	t.Parallel()
	c := connect(t, embedded.ForTest(t, 1)[0])
	script := redis.NewScript(`
		local function now()
			local t = redis.call('TIME')
			return t[1] * 1000000 + t[2]
		end
		local first = now()
		for i = 1, 100 do redis.call('SET', 'k', i) end
		return {first, now()}`)
	last := time.Now()
	for range 20 {
		got, err := script.Run(t.Context(), c, []string{"k"}).Int64Slice()
		must(t, err)
		if got[0] != got[1] {
			t.Fatalf("within a script: got %d, then %d", got[0], got[1])
		}
		at := time.UnixMicro(got[0])
		if at.Before(last.Truncate(time.Microsecond)) || at.After(time.Now()) {
			t.Fatalf("TIME: got %v, want between %v and now", at, last)
		}
		last = time.Now()
	}
}

func TestPTTLFallsAsTimeGoesOn(t *testing.T) {
	t.Parallel()
	c := connect(t, embedded.ForTest(t, 1)[0])
	start := time.Now()
	must(t, c.Set(t.Context(), "k", "v", time.Minute).Err())
	set := time.Now() // or before, since start
	for time.Since(set) < 30*time.Millisecond {
		before := time.Since(set)
		left, err := c.PTTL(t.Context(), "k").Result()
		must(t, err)
		passed := time.Minute - left
		if passed > time.Since(start)+time.Millisecond || passed < before-20*time.Millisecond {
			t.Fatalf("after %v: got %v left", before, left)
		}
	}
}

func TestAStoppedNodeIsGoneAndComesBackWithItsDataAndWithoutItsScripts(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	c := connect(t, n)
	must(t, c.Set(t.Context(), "k", "v", 0).Err())
	sha, err := c.ScriptLoad(t.Context(), "return 1").Result()
	must(t, err)
	must(t, n.Stop(), n.Stop())
	if conn, err := net.Dial("tcp", n.Addr()); err == nil {
		conn.Close()
		t.Error("a stopped node takes connections")
	}
	must(t, n.Restart(false))
	c = connect(t, n)
	if got, err := c.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("after a restart: got %q, %v, want v", got, err)
	}
	if err := c.EvalSha(t.Context(), sha, nil).Err(); err == nil ||
		!strings.HasPrefix(err.Error(), "NOSCRIPT") {
		t.Errorf("its scripts: got %v, want NOSCRIPT", err)
	}
}

func TestRestartEndsConnectionsAndMayEmpty(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	must(t, connect(t, n).Set(t.Context(), "k", "v", 0).Err())
	idle, err := net.Dial("tcp", n.Addr())
	must(t, err)
	defer idle.Close()
	must(t, n.Restart(true))
	must(t, idle.SetReadDeadline(time.Now().Add(20*time.Second)))
	if _, err := idle.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a connection from before: got %v, want it ended", err)
	}
	if got, err := connect(t, n).DBSize(t.Context()).Result(); err != nil || got != 0 {
		t.Errorf("keys: got %d, %v, want 0", got, err)
	}
}

func TestTimeGoesOnForAStoppedNode(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	const ttl = 30 * time.Millisecond
	sentAt := time.Now()
	must(t, connect(t, n).Set(t.Context(), "k", "v", ttl).Err(), n.Stop())
	<-time.After(time.Until(sentAt.Add(2 * ttl)))
	must(t, n.Restart(false))
	if err := connect(t, n).Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("a key that ended meanwhile: got %v, want none", err)
	}
}

func TestManyKeysDoNotTakeAllTheTime(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	c := connect(t, n)
	const many, ttl = 5000, 50 * time.Millisecond
	pipe := c.Pipeline()
	for i := range many {
		pipe.Set(t.Context(), fmt.Sprint("long", i), "v", time.Hour)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	if got, err := lifetime(t.Context(), c, "short", ttl); err != nil || got < ttl-20*time.Millisecond {
		t.Errorf("a key lived for %v (%v), want about %v", got, err, ttl)
	}
	if got, err := c.DBSize(t.Context()).Result(); err != nil || got != many {
		t.Errorf("keys: got %d, %v, want %d", got, err, many)
	}
}

func TestNodesAreIndependentAndCloseIsForGood(t *testing.T) {
	t.Parallel()
	nodes := embedded.ForTest(t, 3)
	must(t, connect(t, nodes[0]).Set(t.Context(), "k", "v", 0).Err())
	for i, n := range nodes[1:] {
		if got, err := connect(t, n).DBSize(t.Context()).Result(); err != nil || got != 0 {
			t.Errorf("node %d: got %d keys, %v, want 0", i+1, got, err)
		}
	}
	must(t, nodes.Close(), nodes.Close())
	for _, n := range nodes {
		if err := n.Restart(false); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Restart after Close: got %v, want %v", err, net.ErrClosed)
		}
	}
	if len(nodes.Addrs()) != 3 {
		t.Errorf("got %v, want three addresses", nodes.Addrs())
	}
}

func TestNoNodesIsAnError(t *testing.T) {
	t.Parallel()
	if nodes, err := embedded.Start(0); err == nil || nodes != nil {
		t.Errorf("got %v, %v, want an error", nodes, err)
	}
}

func TestAPortTakenWhileTheNodeWasDownIsAnError(t *testing.T) {
	t.Parallel()
	n := embedded.ForTest(t, 1)[0]
	must(t, n.Stop())
	stranger, err := net.Listen("tcp4", n.Addr())
	must(t, err)
	if n.Restart(false) == nil {
		t.Error("restart on a taken port: got no error")
	}
	must(t, stranger.Close(), n.Restart(false))
	must(t, connect(t, n).Ping(t.Context()).Err())
}
