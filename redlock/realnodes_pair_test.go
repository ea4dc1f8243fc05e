package redlock_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/loopback"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// Fail-over: the first of three nodes is a primary with a Redis replica, behind a client of the
// user's own that follows whichever is the primary. After a fail-over the node gives no vote for
// MaxTTL and min-replicas-max-lag, by which time everything that it can have forgotten has ended.

// pairLag is the pair's min-replicas-max-lag.
const pairLag = time.Second

// A pairRig is two plain nodes, the rig's servers, and the pair.
type pairRig struct {
	*realRig
	pair    redisproc.Nodes // primary and replica, at first
	current atomic.Pointer[redisproc.Node]
	dials   atomic.Int32 // to the pair
	guard   bool
}

func onPair(t *testing.T, guard bool) *pairRig {
	t.Helper()
	r := &pairRig{realRig: onRealNodes(t, 2), guard: guard}
	r.pair = redisproc.ForTest(t, 2, redisproc.WithConfig("min-replicas-to-write 1",
		fmt.Sprintf("min-replicas-max-lag %d", int(pairLag.Seconds()))))
	r.lead(0)
	return r
}

// lead makes one of the pair the primary, the other its replica, and lets clients follow.
func (r *pairRig) lead(i int) {
	r.Helper()
	r.must(r.pair[i].ReplicaOf(nil), r.pair[1-i].ReplicaOf(r.pair[i]))
	r.current.Store(r.pair[i])
}

// follower is a client whose connections lead to the pair's primary.
func (r *pairRig) follower() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: "pair",
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			r.dials.Add(1)
			var d net.Dialer
			return d.DialContext(ctx, "tcp", r.current.Load().Addr())
		}})
}

// user is a redlock client over the pair, through this client, and those of the plain nodes that
// are listed; to the others it has no way.
func (r *pairRig) user(pair *redis.Client, plain ...int) *redlock.Client {
	r.Helper()
	clients := []*redis.Client{pair}
	for i, s := range r.servers {
		addr := s.Addr()
		isListed := false
		for _, listed := range plain {
			isListed = isListed || listed == i
		}
		options := &redis.Options{Addr: addr, MaxRetries: -1}
		if !isListed {
			options.Dialer = func(context.Context, string, string) (net.Conn, error) {
				return nil, fmt.Errorf("no way to %s", addr)
			}
		}
		clients = append(clients, redis.NewClient(options))
	}
	r.Cleanup(func() {
		for _, client := range clients {
			client.Close()
		}
	})
	return r.open(redlock.Config{Clients: clients, DisableRestartGuard: !r.guard})
}

// bare takes a lock with a bare majority, the pair's vote among it. A primary whose replica's word is
// late, on a busy machine, takes no writes for a moment.
func (r *pairRig) bare(c *redlock.Client, name string) *redlock.Lock {
	r.Helper()
	return r.takeWithin(20*time.Second, c, name)
}

// inUse makes the nodes vote and returns two clients, the first of which reaches the second plain
// node only if all is set.
func (r *pairRig) inUse(all bool) (a, b *redlock.Client) {
	r.Helper()
	reach := []int{0}
	if all {
		reach = append(reach, 1)
	}
	a, b = r.user(r.follower(), reach...), r.user(r.follower(), 0, 1)
	r.admit(b)
	r.free(r.take(b, "warm up"))
	return a, b
}

// votesAgain waits until the pair votes and says how long after began that is. It wants MaxTTL and
// the lag at least.
func (r *pairRig) votesAgain(c *redlock.Client, began time.Time) {
	r.Helper()
	last := ""
	waitUntil(r.T, "the pair votes again", func() bool {
		status := c.Nodes(r.Context())[0]
		if status.Err == nil {
			return true
		}
		if text, _, _ := strings.Cut(status.Err.Error(), " for another"); text != last {
			last = text
			r.Logf("%v after the fail-over: %v", time.Since(began).Round(time.Millisecond), status.Err)
		}
		return false
	})
	took := time.Since(began)
	r.Logf("votes again %v after the fail-over, with a MaxTTL of %v and a lag of %v",
		took.Round(time.Millisecond), realTTL, pairLag)
	if took < realTTL+pairLag-100*time.Millisecond {
		r.Error("that is too early")
	}
}

// A lock on all three nodes is held across the fail-over.
func TestRealFailOverUnderAHeldLock(t *testing.T) {
	t.Parallel()
	r := onPair(t, true)
	a, b := r.inUse(true)
	s := &struggle{first: r.take(a, "k")}
	waitUntil(t, "the replica has the lock", func() bool {
		owner, _ := r.pair[1].Do(t.Context(), "GET", "k")
		return owner != nil
	})
	r.must(r.pair[0].Kill())
	r.must(r.pair[1].ReplicaOf(nil))
	r.current.Store(r.pair[1])
	began := time.Now()
	s.rival(r.realRig, b, realTTL/2)
	r.must(r.pair[0].Restart(true), r.pair[0].ReplicaOf(r.pair[1]))
	s.rival(r.realRig, b, realTTL)
	if s.second != nil || s.double {
		t.Errorf("a rival has it, both at once: %v", s.double)
	}
	r.held(s.first)
	r.votesAgain(b, began)
	r.held(s.first)
	r.free(s.first)
	if next := r.takeWithin(4*realTTL, b, "k"); next.Token() <= s.first.Token() {
		t.Errorf("token %d after %d", next.Token(), s.first.Token())
	}
}

// onForgettingPair runs a test with the guard, and without it, where it has to end with two
// holders: that shows that it would find them.
func onForgettingPair(t *testing.T, test func(r *pairRig)) {
	for _, guard := range []bool{true, false} {
		t.Run(fmt.Sprintf("guard=%v", guard), func(t *testing.T) {
			t.Parallel()
			test(onPair(t, guard))
		})
	}
}

// forgotten lets b try for a lock that the pair has forgotten at began.
func (r *pairRig) forgotten(s *struggle, b *redlock.Client, began time.Time) {
	r.Helper()
	s.rival(r.realRig, b, 20*time.Second)
	if s.second == nil {
		r.Fatal("nobody gets the lock any more")
	}
	r.Logf("the rival has it after %v", time.Since(began).Round(time.Millisecond))
	if s.double == r.guard {
		r.Errorf("two holders: %v, with the guard on: %v", s.double, r.guard)
	}
	if r.guard && s.second.Token() <= s.first.Token() {
		r.Errorf("token %d after %d", s.second.Token(), s.first.Token())
	}
	if r.guard {
		r.votesAgain(b, began)
	}
}

// The lock had a bare majority, the pair's vote among it, and had not reached the replica. Without
// the wait the pair would now make the rival's majority.
func TestRealFailOverForgetsALock(t *testing.T) {
	t.Parallel()
	onForgettingPair(t, func(r *pairRig) {
		a, b := r.inUse(false)
		s := &struggle{first: r.bare(a, "k")}
		r.must(r.pair[0].Kill())
		r.must(r.pair[1].ReplicaOf(nil))
		began := time.Now()
		for _, command := range [][]any{
			// Its replica is dead: that alone would keep it from voting.
			{"CONFIG", "SET", "min-replicas-to-write", 0},
			{"DEL", "k"}, // as if it had not come that far
		} {
			_, err := r.pair[1].Do(r.Context(), command...)
			r.must(err)
		}
		r.current.Store(r.pair[1])
		r.forgotten(s, b, began)
	})
}

// Finding G2: the primary becomes the replica of another server, to which no client speaks, and so
// loses all it had, and is the primary again, all on the same connections.
func TestRealFailBackOnTheSameConnection(t *testing.T) {
	t.Parallel()
	onForgettingPair(t, func(r *pairRig) {
		a, b := r.inUse(false)
		s := &struggle{first: r.bare(a, "k")}
		r.must(r.pair[1].ReplicaOf(nil))
		for _, command := range [][]any{
			{"CONFIG", "SET", "min-replicas-to-write", 0},
			{"FLUSHALL"}, // the interim primary missed the lock
		} {
			_, err := r.pair[1].Do(r.Context(), command...)
			r.must(err)
		}
		dials := r.dials.Load()
		r.must(r.pair[0].ReplicaOf(r.pair[1]))
		r.must(r.pair[0].ReplicaOf(nil), r.pair[1].ReplicaOf(r.pair[0]))
		began := time.Now()
		r.forgotten(s, b, began)
		r.Logf("%d connections to the pair before the fail-back, %d after it", dials,
			r.dials.Load()-dials)
	})
}

// The same with a real sentinel, and go-redis' own client for that.
func TestRealSentinel(t *testing.T) {
	t.Parallel()
	r := onPair(t, true)
	addr := r.sentinel()
	open := func() *redis.Client {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "pair", SentinelAddrs: []string{addr}, MaxRetries: -1})
	}
	a, b := r.user(open(), 0, 1), r.user(open(), 0, 1)
	r.admit(b)
	s := &struggle{first: r.take(a, "k")}
	r.meets(b, "k")
	r.must(r.pair[0].Kill())
	killed := time.Now()
	watcher := r.watcher(addr)
	waitUntil(t, "the sentinel has made the replica the primary, and is done with it", func() bool {
		at, err := watcher.GetMasterAddrByName(t.Context(), "pair").Result()
		return err == nil && strings.Join(at, ":") == r.pair[1].Addr()
	})
	began := time.Now()
	t.Logf("the sentinel took %v", began.Sub(killed).Round(time.Millisecond))
	r.must(r.pair[0].Restart(true), r.pair[0].ReplicaOf(r.pair[1]))
	s.rival(r.realRig, b, realTTL)
	if s.second != nil || s.double {
		t.Errorf("a rival has it, both at once: %v", s.double)
	}
	r.votesAgain(b, began)
	r.held(s.first)
	r.free(s.first)
	if next := r.takeWithin(4*realTTL, b, "k"); next.Token() <= s.first.Token() {
		t.Errorf("token %d after %d", next.Token(), s.first.Token())
	}
}

// sentinel starts a Redis Sentinel that watches the pair, and returns its address once it knows the
// replica.
func (r *pairRig) sentinel() string {
	r.Helper()
	server, err := redisproc.Find()
	r.must(err)
	port, err := loopback.Reserve()
	r.must(err)
	dir := r.TempDir()
	host, number, err := net.SplitHostPort(r.pair[0].Addr())
	r.must(err)
	config := filepath.Join(dir, "sentinel.conf")
	r.must(os.WriteFile(config, fmt.Appendf(nil, `bind 127.0.0.1
port %d
dir %q
sentinel monitor pair %s %s 1
sentinel down-after-milliseconds pair 500
sentinel failover-timeout pair 5000
`, port.Number(), dir, host, number), 0o600))
	cmd := exec.Command(server, config, "--sentinel")
	log, err := os.Create(filepath.Join(dir, "log"))
	r.must(err)
	cmd.Stdout, cmd.Stderr = log, log
	r.must(cmd.Start())
	r.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r.Failed() {
			text, _ := os.ReadFile(log.Name())
			r.Logf("the sentinel's log:\n%s", text)
		}
		log.Close()
		port.Close()
	})
	watcher := r.watcher(port.Addr())
	waitUntil(r.T, "the sentinel knows the replica", func() bool {
		replicas, err := watcher.Replicas(r.Context(), "pair").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	return port.Addr()
}

// watcher is a connection to a sentinel.
func (r *pairRig) watcher(addr string) *redis.SentinelClient {
	c := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1})
	r.Cleanup(func() { c.Close() })
	return c
}
