package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"
)

// Do the faults do what they say? What the other tests find rests on that.

// ask asks through the node's way, for a second at the most.
func ask(t *testing.T, addr string, command ...any) (any, error) {
	t.Helper()
	c := dial(addr)
	defer c.Close()
	return asks(t, c, command...)
}

func dial(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true})
}

func asks(t *testing.T, c *redis.Client, command ...any) (any, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return c.Do(ctx, command...).Result()
}

func isSilent(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func TestANodeComesBackAtItsAddressWithOrWithoutItsData(t *testing.T) {
	t.Parallel()
	n := ForTest(t, 1, WithConfig("appendonly yes", "appendfsync always")).Nodes[0]
	addr := n.Addr()
	set := func() {
		if _, err := ask(t, addr, "SET", "k", "v"); err != nil {
			t.Fatal(err)
		}
	}
	for what, tc := range map[string]struct {
		end, start func() error
		want       any
	}{
		"stop, same data": {n.Stop, n.Start, "v"},
		"kill, same data": {n.Kill, n.Start, "v"},
		"stop, empty":     {n.Stop, n.StartEmpty, nil},
		"kill, empty":     {n.Kill, n.StartEmpty, nil},
	} {
		set()
		if err := tc.end(); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, addr, "PING"); err == nil || isSilent(err) {
			t.Errorf("%s: while it is down: %v, want a refusal", what, err)
		}
		if err := tc.start(); err != nil {
			t.Fatal(err)
		}
		got, err := ask(t, addr, "GET", "k")
		if got != tc.want || err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, tc.want)
		}
		if n.Addr() != addr {
			t.Errorf("%s: address %s, was %s", what, n.Addr(), addr)
		}
	}
}

// testcontainers/testcontainers-go 2694; speakeasy-api/gram 3331;
// redis-field-engineering/testcontainers-redis 20: a container counted as ready before its port
// was, and under load the port led to another one for a moment. Here five go down and come back at
// once, thirty times in all, and each answers as itself whenever it is said to be there.
func TestANodeIsNeverTakenForAnother(t *testing.T) {
	t.Parallel()
	c := ForTest(t, 5, WithConfig("appendonly yes", "appendfsync always"))
	var running sync.WaitGroup
	for i, n := range c.Nodes {
		running.Go(func() {
			own := fmt.Sprint("node ", i)
			_, err := ask(t, n.Addr(), "SET", "who", own)
			ports := map[string]bool{}
			for range 6 {
				err = errors.Join(err, n.Kill(), n.Start())
				if got, askErr := ask(t, n.Addr(), "GET", "who"); got != own || askErr != nil {
					t.Errorf("at %s: got %v, %v; want %q", n.Addr(), got, askErr, own)
				}
				ports[n.mapped] = true
			}
			if err != nil {
				t.Error(err)
			}
			t.Logf("%s was at %d ports", own, len(ports))
		})
	}
	running.Wait()
}

func TestNetworkFaultsLoseWhatTheySay(t *testing.T) {
	t.Parallel()
	c := ForTest(t, 1)
	n := c.Nodes[0]
	other, err := c.Ways()
	if err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		fault func() error
		done  bool // the node did what it was asked
	}{
		"cut":           {n.Cut, false},
		"lost requests": {n.LoseRequests, false},
		"lost replies":  {n.LoseReplies, true},
		"paused":        {n.Pause, false},
	} {
		warm := dial(n.Addr()) // a new connection says hello first, and would wait for that
		t.Cleanup(func() { warm.Close() })
		if _, err := asks(t, warm, "PING"); err != nil {
			t.Fatal(err)
		}
		if err := tc.fault(); err != nil {
			t.Fatal(err)
		}
		if _, err := asks(t, warm, "SET", what, "v"); !isSilent(err) {
			t.Errorf("%s: got %v, want silence", what, err)
		}
		if what != "paused" {
			if _, err := ask(t, other[0].Addr(), "PING"); err != nil {
				t.Errorf("%s: the other way: %v", what, err)
			}
			if got, err := n.Do(t.Context(), "EXISTS", what); (got == int64(1)) != tc.done || err != nil {
				t.Errorf("%s: the key exists: %v, %v; want %v", what, got, err, tc.done)
			}
		}
		if err := errors.Join(n.Heal(), n.Unpause()); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, n.Addr(), "PING"); err != nil {
			t.Errorf("%s, healed: %v", what, err)
		}
	}
	if err := n.Slow(200*time.Millisecond, 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := ask(t, n.Addr(), "PING"); err == nil && time.Since(began) < 400*time.Millisecond {
		t.Errorf("slow by 200 ms each way: answered after %v", time.Since(began))
	}
	if err := errors.Join(n.Heal(), n.Shorten(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, n.Addr(), "PING"); err == nil {
		t.Error("a reply that ends in the middle is no error")
	}
	if err := errors.Join(n.Heal(), n.Drop()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, n.Addr(), "PING"); err != nil {
		t.Errorf("after the drop: %v", err)
	}
}

func TestTheClockStepsBothWays(t *testing.T) {
	t.Parallel()
	n := ForTest(t, 1, WithClock()).Nodes[0]
	lifetime := func() time.Duration {
		ms, err := n.Do(t.Context(), "PTTL", "k")
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ms.(int64)) * time.Millisecond
	}
	if _, err := n.Do(t.Context(), "SET", "k", "v", "PX", 1000_000); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ step, least, most time.Duration }{
		{-time.Hour, time.Hour + 900*time.Second, time.Hour + 1000*time.Second},
		{time.Hour + 500*time.Second, 400 * time.Second, 500 * time.Second},
	} {
		if err := n.StepClock(tc.step); err != nil {
			t.Fatal(err)
		}
		if got := lifetime(); got < tc.least || got > tc.most {
			t.Errorf("after %v: the key lives for %v, want %v to %v", tc.step, got, tc.least, tc.most)
		}
	}
	if err := n.StepClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, err := n.Do(t.Context(), "EXISTS", "k"); got != int64(0) || err != nil {
		t.Errorf("an hour later the key exists: %v, %v", got, err)
	}
	if err := errors.Join(n.Kill(), n.Start()); err != nil {
		t.Fatal(err)
	}
	now, err := n.Do(t.Context(), "EVAL", "return redis.call('TIME')[1]", 0)
	if err != nil {
		t.Fatal(err)
	}
	ahead, err := time.ParseDuration(now.(string) + "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := ahead - time.Duration(time.Now().UnixNano()); got < time.Hour {
		t.Errorf("after a restart the clock is %v ahead, want more than an hour", got)
	}
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	c := ForTest(t, 2)
	if err := c.Nodes[0].Pause(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes {
		_, err := n.engine().ContainerInspect(t.Context(), n.container.ID,
			client.ContainerInspectOptions{})
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "no such container") {
			t.Errorf("%s: got %v, want no container", n.Addr(), err)
		}
	}
	if err := c.Nodes[1].Start(); err == nil {
		t.Error("a closed node can be started")
	}
}

// Ctrl-C may come at any moment of a start.
func TestAStartThatIsGivenUpLeavesNoContainer(t *testing.T) {
	t.Parallel()
	image, err := findImage(t.Context())
	need(t, err)
	var starts sync.WaitGroup
	for i := range 20 {
		starts.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Millisecond)
			defer cancel()
			n, err := startNode(ctx, image, collect(nil))
			if err == nil {
				t.Logf("%d is faster than its end", i)
			}
			if err := n.close(); err != nil {
				t.Error(err)
			}
			// The engine may still be at it: what nobody waited for comes late.
			for range 10 {
				left, err := n.engine().ContainerList(t.Context(), client.ContainerListOptions{All: true,
					Filters: client.Filters{}.Add("label", nodeLabel+"="+n.id)})
				if err != nil || len(left.Items) > 0 {
					t.Errorf("given up after %d x 20 ms: got %v, %v; want no container", i, left.Items, err)
					return
				}
				<-time.After(100 * time.Millisecond)
			}
		})
	}
	starts.Wait()
}

func TestAnImageThatIsNowhereIsNamed(t *testing.T) {
	t.Parallel()
	_, err := engine()
	need(t, err)
	const image = "127.0.0.1:1/nowhere:1" // nothing listens there
	if err := fetch(image); err == nil || !strings.Contains(err.Error(), image) {
		t.Errorf("got %v, want an error with %q", err, image)
	}
}

func TestANodeThatCannotStartSaysWhyAndIsGone(t *testing.T) {
	t.Parallel()
	ForTest(t, 1) // or there is no engine
	c, err := Start(t.Context(), 1, WithConfig("no-such-setting 1"))
	if err == nil || c != nil {
		t.Fatalf("got %v, %v; want an error", c, err)
	}
	if !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %q, want what the server said", err)
	}
}
