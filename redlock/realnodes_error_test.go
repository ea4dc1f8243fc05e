package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// What real servers answer when they are not well: error votes with the node named, never "taken".

// saysOf wants the error to name nodes of the first n, with these words, and no others: as many of
// them as it takes to be sure of the outcome.
func (r *realRig) saysOf(round *redlock.RoundError, n int, words string) {
	r.Helper()
	if least := min(n, round.Quorum); len(round.Errs) < least {
		r.Errorf("errors of %d nodes, want at least %d: %v", len(round.Errs), least, round)
	}
	for _, e := range round.Errs {
		isOne := slices.ContainsFunc(r.servers[:n], func(s *redisproc.Node) bool {
			return strings.HasSuffix(e.Node, s.Addr())
		})
		if !isOne || !strings.Contains(e.Error(), words) {
			r.Errorf("node error %q, want one of the first %d nodes and %q", e, n, words)
		}
	}
}

// leandromoreira/redlock-rb 108; moira-alert/moira 680: missing rights were answered as "somebody
// has it".
func TestRealNoPassword(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5, redisproc.WithPassword("secret"))
	var addrs []string
	for _, s := range r.servers {
		addrs = append(addrs, "redis://:secret@"+s.Addr())
	}
	knows := r.admitted(redlock.Config{Addrs: addrs})
	l := r.take(knows, "k")
	r.saysOf(r.refused(r.open(redlock.Config{}), "k", redlock.ErrNoQuorum), 5, "wants a password")
	r.saysOf(r.refused(r.open(redlock.Config{Addrs: append(r.servers.Addrs()[:3:3], addrs[3:]...)}), "k",
		redlock.ErrNoQuorum), 3, "wants a password")
	minority := r.open(redlock.Config{Addrs: append(r.servers.Addrs()[:2:2], addrs[2:]...)})
	r.refused(minority, "k", redlock.ErrHeld)
	r.free(l)
	r.free(r.takeWithin(time.Minute, minority, "k"))
	wrong := "redis://:wrong@" + r.servers[0].Addr()
	round := r.refused(r.open(redlock.Config{Addrs: []string{wrong, addrs[1]}}), "k", redlock.ErrNoQuorum)
	r.saysOf(round, 1, "refused the password")
	if strings.Contains(round.Error(), ":wrong@") || strings.Contains(round.Error(), ":secret@") {
		t.Errorf("the error shows a password: %v", round)
	}
}

// Nodes at maxmemory refuse new locks, and go on extending and freeing held ones.
func TestRealOutOfMemory(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5)
	c := r.admitted(redlock.Config{TTL: time.Minute})
	l := r.take(c, "k")
	r.do(upTo(2), "CONFIG", "SET", "maxmemory", 1)
	r.free(r.take(c, "a minority is full"))
	r.do(upTo(5), "CONFIG", "SET", "maxmemory", 1)
	r.saysOf(r.refused(c, "other", redlock.ErrNoQuorum), 5, "out of memory")
	before := l.Until()
	r.must(l.Extend(t.Context()))
	if !l.Until().After(before) {
		t.Error("the extension did not move the end")
	}
	r.free(l)
	r.gone("k")
	r.do(upTo(5), "CONFIG", "SET", "maxmemory", 0)
	r.free(r.take(c, "k"))
}

// mike-marcacci/node-redlock 65, 11: nodes that cannot write to disk refuse all writes (MISCONF),
// and Unlock failed without a word.
func TestRealMisconf(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5)
	c := r.admitted(redlock.Config{TTL: time.Minute})
	first, second := r.take(c, "first"), r.take(c, "second")
	refuseWrites := func(nodes []int) {
		for _, i := range nodes {
			r.must(os.RemoveAll(r.servers[i].Dir())) // where it would save
		}
		r.do(nodes, "CONFIG", "SET", "save", "3600 1")
		r.do(nodes, "BGSAVE")
		for _, i := range nodes {
			waitUntil(t, "the save has failed", func() bool {
				info, _ := r.do([]int{i}, "INFO", "persistence").(string)
				return strings.Contains(info, "rdb_last_bgsave_status:err")
			})
		}
	}
	refuseWrites(upTo(1))
	r.free(first) // the node is retried
	refuseWrites([]int{1, 2})
	r.saysOf(r.refused(c, "other", redlock.ErrNoQuorum), 3, "refuses writes")
	err := second.Extend(t.Context())
	wantIs(t, err, redlock.ErrNoQuorum)
	r.held(second)
	err = second.Unlock(t.Context())
	wantIs(t, err, redlock.ErrNoQuorum)
	var round *redlock.RoundError
	if errors.As(err, &round) {
		r.saysOf(round, 3, "refuses writes")
	}
	r.do(upTo(3), "CONFIG", "SET", "save", "")
	r.free(second) // may be repeated
	waitUntil(t, "no key is left, the retried node's included", func() bool {
		return strings.Join(append(r.keys("first"), r.keys("second")...), "") == ""
	})
	r.free(r.take(c, "second"))
}

// redis/go-redis 790; envoyproxy/ratelimit 1191: pooled connections to a node that was made a
// replica answered READONLY until the process was restarted.
func TestRealReadOnly(t *testing.T) {
	t.Parallel()
	// A node that was a replica waits for so much longer.
	r := onRealNodes(t, 5, redisproc.WithConfig("min-replicas-max-lag 1"))
	elsewhere := redisproc.ForTest(t, 1)[0]
	c := r.admitted(redlock.Config{})
	r.free(r.take(c, "k"))
	r.must(r.servers[0].ReplicaOf(elsewhere))
	r.free(r.take(c, "k"))
	r.must(r.servers[1].ReplicaOf(elsewhere), r.servers[2].ReplicaOf(elsewhere))
	round := r.refused(c, "k", redlock.ErrNoQuorum)
	r.saysOf(round, 3, "replica")
	for i := range upTo(3) {
		r.must(r.servers[i].ReplicaOf(nil))
	}
	began := time.Now()
	r.free(r.takeWithin(4*realTTL+10*time.Second, c, "k"))
	t.Logf("votes again %v after the repair", time.Since(began).Round(time.Millisecond))
}

// taskforcesh/bullmq 265; redis/redis-py 375: nodes that are busy with somebody's script.
func TestRealBusy(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5, redisproc.WithConfig("lua-time-limit 100"))
	c := r.admitted(redlock.Config{TTL: 12 * time.Second, NodeTimeout: time.Second})
	l := r.take(c, "k")
	var looping sync.WaitGroup
	loop := func(i int) {
		looping.Go(func() { // its answer comes with SCRIPT KILL
			_, _ = r.servers[i].Do(context.Background(), "EVAL", "while true do end", 0)
		})
		waitUntil(t, "the node says that it is busy", func() bool {
			_, err := r.servers[i].Do(context.Background(), "PING")
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		})
	}
	loop(0)
	r.free(r.take(c, "one is busy"))
	loop(1)
	loop(2)
	r.saysOf(r.refused(c, "three are busy", redlock.ErrNoQuorum), 3, "busy")
	wantIs(t, l.Extend(t.Context()), redlock.ErrNoQuorum)
	r.held(l)
	r.do(upTo(3), "SCRIPT", "KILL")
	looping.Wait()
	began := time.Now()
	r.free(r.takeWithin(time.Minute, c, "three were busy"))
	t.Logf("normal %v after the kill", time.Since(began).Round(time.Millisecond))
	r.must(l.Extend(t.Context()))
	r.free(l)
}

// redis/go-redis 1131: a node that loads its data says LOADING. What it has when it is back, a data
// set of old, gives no vote to a rival of a live lock.
func TestRealLoading(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5, redisproc.WithConfig("save 3600 1", "rdbcompression no",
		"loading-process-events-interval-bytes 1024", "key-load-delay 100"))
	a, b := r.admitted(redlock.Config{TTL: time.Minute}), r.open(redlock.Config{TTL: time.Minute})
	r.do(upTo(3), "EVAL", "for i = 1, 6000 do redis.call('SET', 'filler' .. i, i) end", 0)
	r.must(r.servers[3].Freeze(), r.servers[4].Freeze())
	r.do(upTo(3), "SAVE") // without the lock
	l := r.take(a, "k", redlock.WithoutRenewal())
	for _, i := range upTo(3) {
		r.must(r.servers[i].Kill())
	}
	r.must(r.servers[3].Thaw(), r.servers[4].Thaw())
	loaded := make(chan error, 3)
	for _, i := range upTo(3) {
		go func() { loaded <- r.servers[i].Restart(false) }()
	}
	said := false
	for back := 0; back < 3; {
		select {
		case err := <-loaded:
			r.must(err)
			back++
		case <-time.After(10 * time.Millisecond):
			round := r.refused(b, "k", redlock.ErrNoQuorum)
			said = said || strings.Contains(round.Error(), "still loads its data")
		}
	}
	if !said {
		t.Error("no node ever said that it loads")
	}
	if n, _ := r.do(upTo(3), "EXISTS", "filler1").(int64); n != 1 {
		t.Fatal("the nodes have no data set of old")
	}
	waitUntil(t, "they are asked again, and wait", func() bool {
		wait := 0
		for _, node := range r.refused(b, "k", redlock.ErrNoQuorum).Errs {
			if strings.Contains(node.Error(), "memory is new") {
				wait++
			}
		}
		return wait == 3
	})
	r.held(l)
}

// redis/go-redis 3228; leandromoreira/redlock-rb 27: after a restart or SCRIPT FLUSH pipelines
// failed for ever. A cache of scripts that is gone is no loss of memory: nobody waits.
func TestRealScriptFlush(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5)
	c := r.admitted(redlock.Config{TTL: time.Minute})
	l := r.take(c, "k")
	r.do(upTo(3), "SCRIPT", "FLUSH")
	r.must(l.Extend(t.Context()))
	r.do(upTo(3), "SCRIPT", "FLUSH")
	r.free(l)
	r.gone("k")

	var callers sync.WaitGroup
	var failed sync.Once
	for caller := range 64 {
		callers.Go(func() {
			for i := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				l, err := c.TryLock(ctx, fmt.Sprintf("%d/%d", caller, i))
				if err == nil {
					err = l.Unlock(ctx)
				}
				cancel()
				if err != nil {
					failed.Do(func() { t.Errorf("caller %d, pair %d: %v", caller, i, err) })
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	flushes := 0
	for running := true; running; flushes++ {
		r.do(upTo(3), "SCRIPT", "FLUSH")
		select {
		case <-done:
			running = false
		default:
		}
	}
	t.Logf("%d flushes of three nodes meanwhile", flushes)

	r.do(upTo(5), "SCRIPT", "FLUSH")
	r.do(upTo(5), "CONFIG", "RESETSTAT")
	for i := range 20 {
		r.free(r.take(c, fmt.Sprintf("after/%d", i)))
	}
	for i := range r.servers {
		info, _ := r.do([]int{i}, "INFO", "commandstats").(string)
		calls := 0
		if _, rest, ok := strings.Cut(info, "cmdstat_eval:calls="); ok {
			fmt.Sscanf(rest, "%d", &calls)
		}
		if calls > 6 { // a text for each of acquire, release and theirs for many, raise, admit
			t.Errorf("node %d was sent a script's text %d times", i, calls)
		}
	}
}

// samcook/RedLock.net 48 and 93, second case: FLUSHALL under a held lock. It is told at its next
// renewal, and until then the nodes do not vote for anybody else.
func TestRealFlushAll(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := &struggle{first: r.take(a, "k")}
	r.meets(b, "k")
	r.do(upTo(5), "FLUSHALL")
	began := time.Now()
	go func() {
		select {
		case <-s.first.Lost():
			t.Logf("told after %v", time.Since(began).Round(time.Millisecond))
		case <-t.Context().Done():
		}
	}()
	s.rival(r, b, 20*time.Second)
	switch took := time.Since(began); {
	case s.second == nil:
		t.Fatal("the nodes do not vote any more")
	case s.double:
		t.Error("two holders")
	case took < realTTL-100*time.Millisecond:
		t.Errorf("the rival has it after %v, want MaxTTL, %v", took, realTTL)
	case s.second.Token() <= s.first.Token():
		t.Errorf("token %d after %d", s.second.Token(), s.first.Token())
	default:
		t.Logf("votes again after %v", took.Round(time.Millisecond))
	}
	wantIs(t, context.Cause(s.first.Context()), redlock.ErrLost)
}

// redis/go-redis 1737, 3289: after a restart all retries were spent on dead pooled connections.
func TestRealRestartUnderWarmPools(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5)
	var clients []*redis.Client
	for _, s := range r.servers {
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), MinIdleConns: 20})
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	c := r.admitted(redlock.Config{Clients: clients})
	r.free(r.take(c, "k"))
	for i, client := range clients {
		waitUntil(t, "the pool is warm", func() bool { return client.PoolStats().IdleConns >= 20 })
		if i < 3 {
			r.must(r.servers[i].Kill(), r.servers[i].Restart(true))
		}
	}
	r.admit(c) // not the guard is tested here
	failed := 0
	for range 5 {
		l, err := c.TryLock(t.Context(), "k")
		if err != nil {
			failed++
			t.Logf("after the restart: %v", err)
			continue
		}
		r.free(l)
	}
	if failed > 1 {
		t.Errorf("%d of 5 rounds failed, want at most one", failed)
	}
}
