package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

// One node of three is a pair that sentinels watch, through go-redis' own client for that. After a
// fail-over it gives no vote for MaxTTL and min-replicas-max-lag: by then all that it can have
// forgotten has ended.

// pairLag is the pair's min-replicas-max-lag.
const pairLag = time.Second

// A pairRig is two plain nodes, the rig's, and the pair.
type pairRig struct {
	*rig
	pair *Pair
}

func onPair(t *testing.T) *pairRig {
	t.Helper()
	r := &pairRig{rig: on(t, 2)}
	r.pair = PairForTest(t, WithConfig("min-replicas-to-write 1",
		fmt.Sprintf("min-replicas-max-lag %d", int(pairLag.Seconds()))))
	exercise(t, r.pair.all())
	return r
}

// user is a client over the pair and these plain nodes' ways.
func (r *pairRig) user(cfg redlock.Config, plain ...string) *redlock.Client {
	r.Helper()
	cfg.Clients = []*redis.Client{redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: PairName, SentinelAddrs: r.pair.SentinelAddrs(), Dialer: r.pair.Dial,
		MaxRetries: -1, DialTimeout: time.Second})}
	for _, addr := range plain {
		cfg.Clients = append(cfg.Clients,
			redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1}))
	}
	r.Cleanup(func() {
		for _, client := range cfg.Clients {
			client.Close()
		}
	})
	return r.open(cfg)
}

// inUse makes all nodes vote.
func (r *pairRig) inUse(c *redlock.Client) {
	r.Helper()
	r.admit(c)
	r.free(r.takeWithin(ttl, c, "warm up"))
}

// awaitPrimary waits until the sentinels say that it is this server.
func (r *pairRig) awaitPrimary(n *Node) {
	r.Helper()
	began := time.Now()
	for i := range r.pair.Sentinels {
		r.within(pairTimeout, "sentinels agree on the primary", func() bool {
			now, err := r.pair.Primary(r.Context(), i)
			return err == nil && now == n
		})
	}
	r.Logf("the sentinels took %v", time.Since(began).Round(time.Millisecond))
}

// awaitPair waits until a fail-over would be possible again.
func (r *pairRig) awaitPair() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), pairTimeout)
	defer cancel()
	r.must(r.pair.await(ctx, "the replica is in step", r.pair.inStep),
		r.pair.await(ctx, "sentinels see both", r.pair.watched))
}

// votesAgain waits until c says that the pair votes. It wants that not before MaxTTL and the lag
// have passed since the fail-over, which was not before began.
func (r *pairRig) votesAgain(c *redlock.Client, maxTTL time.Duration, began time.Time) {
	r.Helper()
	last := ""
	r.within(pairTimeout, "the pair votes again", func() bool {
		status := c.Nodes(r.Context())[0]
		if status.Err == nil {
			return true
		}
		if text, _, _ := strings.Cut(status.Err.Error(), " for another"); text != last {
			last = text
			r.Logf("%v after: %v", time.Since(began).Round(time.Millisecond), status.Err)
		}
		return false
	})
	took := time.Since(began)
	r.Logf("votes again %v after the fail-over, with a MaxTTL of %v and a lag of %v",
		took.Round(time.Millisecond), maxTTL, pairLag)
	if took < maxTTL+pairLag-100*time.Millisecond {
		r.Error("that is too early")
	}
}

// A lock is held while the primary dies and the replica takes over, and while the sentinels lead
// all back to the old primary, on connections that stay.
func TestAFailOverAndAFailBackUnderAHeldLock(t *testing.T) {
	t.Parallel()
	r := onPair(t)
	a, b := r.user(redlock.Config{}, r.Addrs()...), r.user(redlock.Config{}, r.Addrs()...)
	r.inUse(a)
	s := &struggle{first: r.take(a, "k")}
	first, second := r.pair.Servers[0], r.pair.Servers[1]
	r.within(ttl, "the replica has the lock", func() bool {
		owner, _ := second.Do(t.Context(), "GET", "k")
		return owner != nil
	})
	// tries lets the rival try for d.
	tries := func(d time.Duration) {
		t.Helper()
		if s.rival(r.rig, b, d) {
			t.Error("the rival has it")
		}
		r.held(s.first)
	}
	tries(ttl / 2)

	began := time.Now()
	r.must(first.Kill())
	tries(ttl)
	r.awaitPrimary(second)
	tries(ttl)
	r.must(first.StartEmpty()) // comes back as a primary, and is told by the sentinels what it is
	r.votesAgain(b, ttl, began)
	r.awaitPair()
	tries(2 * ttl)

	_, err := r.pair.Sentinels[1].Do(t.Context(), "SENTINEL", "FAILOVER", PairName)
	r.must(err)
	began = time.Now()
	tries(ttl)
	r.awaitPrimary(first)
	r.votesAgain(b, ttl, began)
	r.awaitPair()
	tries(2 * ttl)

	// The pair counts: with a plain node dead it is what makes the majority.
	r.must(r.Nodes[1].Kill())
	tries(2 * ttl)
	r.free(s.first)
	next := r.takeWithin(4*ttl, b, "k")
	if next.Token() <= s.first.Token() {
		t.Errorf("token %d after %d", next.Token(), s.first.Token())
	}
	r.free(next)
}

// The lock has a bare majority, the pair's vote among it, and the replica that takes over misses
// it. Without the guard there are two holders then: that shows that the test would find them.
func TestAFailOverThatForgetsALock(t *testing.T) {
	t.Parallel()
	for _, guard := range []bool{true, false} {
		t.Run(fmt.Sprintf("guard=%v", guard), func(t *testing.T) {
			t.Parallel()
			r := onPair(t)
			// Sentinels that do not agree at once take 20 s and more: without the guard the lock
			// has to outlive that, and nobody waits for its end.
			ttl := time.Minute
			if guard {
				ttl = 15 * time.Second
			}
			cfg := redlock.Config{TTL: ttl, NodeTimeout: time.Second, DisableRestartGuard: !guard}
			mine, err := r.Ways()
			r.must(err)
			a, b := r.user(cfg, mine.Addrs()...), r.user(cfg, r.Addrs()...)
			r.inUse(b)
			r.must(mine[1].Cut())
			l := r.take(a, "k", redlock.WithoutRenewal())
			replica := r.pair.Servers[1]
			r.within(5*time.Second, "the replica has the lock", func() bool {
				owner, err := replica.Do(t.Context(), "GET", "k")
				return err == nil && owner != nil
			})
			for _, command := range [][]any{
				// It will have no replica of its own: that alone would keep it from voting.
				{"CONFIG", "SET", "min-replicas-to-write", 0},
				{"CONFIG", "SET", "replica-read-only", "no"},
				{"DEL", "k"}, // as if it had not come that far
			} {
				_, err := replica.Do(t.Context(), command...)
				r.must(err)
			}
			began := time.Now()
			r.must(r.pair.Servers[0].Kill())
			r.awaitPrimary(replica)
			second := r.takeWithin(90*time.Second, b, "k")
			both := min(l.Remaining(), second.Remaining())
			t.Logf("the rival has it %v after the primary's death; both for %v",
				time.Since(began).Round(time.Millisecond), max(both, 0))
			if (both > 0) == guard {
				t.Errorf("two holders: %v, with the guard on: %v", both > 0, guard)
			}
			if guard && second.Token() <= l.Token() {
				t.Errorf("token %d after %d", second.Token(), l.Token())
			}
			if guard {
				r.votesAgain(b, cfg.TTL, began)
			}
			r.free(second)
		})
	}
}
