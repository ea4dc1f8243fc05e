package integration

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// What servers answer when they are not well: votes with an error that names the node, never
// "taken".

// on each of the first count nodes, as a user with all rights.
func (r *rig) do(count int, command ...any) {
	r.Helper()
	each(r, count, r.Nodes, func(n *Node) error {
		_, err := n.Do(r.Context(), command...)
		return err
	})
}

func (r *rig) set(count int, setting string, value any) {
	r.Helper()
	each(r, count, r.Nodes, func(n *Node) error { return n.ConfigSet(r.Context(), setting, value) })
}

// Nodes at maxmemory refuse new locks, and go on extending and freeing held ones.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	c := r.admitted(redlock.Config{})
	l := r.take(c, "k")
	r.set(2, "maxmemory", 1)
	r.free(r.take(c, "a minority is full"))
	r.set(5, "maxmemory", 1)
	r.says(c, "other", 3, "out of memory")
	for until := l.Until(); time.Until(until) > 0; time.Sleep(50 * time.Millisecond) {
		r.held(l) // renewed
	}
	r.must(l.Extend(t.Context()))
	r.free(l)
	r.gone(ttl, "k")
	r.set(5, "maxmemory", 0)
	r.free(r.takeWithin(ttl, c, "k"))
}

// redis/go-redis 790; envoyproxy/ratelimit 1191: pooled connections to a node that was made a
// replica answered READONLY until the process was restarted.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	// A node that was a replica waits for so much longer.
	r := on(t, 5, WithConfig("min-replicas-max-lag 1"))
	c := r.admitted(redlock.Config{})
	l := r.take(c, "held")
	r.everywhere(c, "held")
	r.do(1, "REPLICAOF", "127.0.0.1", 1) // of nobody
	r.free(r.take(c, "one is a replica"))
	r.held(l)
	r.do(3, "REPLICAOF", "127.0.0.1", 1)
	r.says(c, "k", 3, "replica")
	r.do(3, "REPLICAOF", "NO", "ONE")
	r.free(r.takeWithin(4*ttl+10*time.Second, c, "k"))
}

// leandromoreira/redlock-rb 108; moira-alert/moira 680: missing rights were answered as "somebody
// has it".
func TestNoPassword(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithPassword("secret"))
	knows := r.admitted(redlock.Config{Addrs: r.URLs("redis", ":secret")})
	l := r.take(knows, "k")
	r.says(r.open(redlock.Config{}), "k", 3, "wants a password")
	other := r.open(redlock.Config{Addrs: r.URLs("redis", ":wrong")})
	wrong := r.says(other, "k", 3, "refused the password")
	if strings.Contains(wrong.Error(), ":wrong@") {
		t.Errorf("the error shows a password: %v", wrong)
	}
	// It knows the password of a majority: that is enough to see who has it.
	mixed := append(r.Addrs()[:2:2], r.URLs("redis", ":secret")[2:]...)
	r.refused(r.open(redlock.Config{Addrs: mixed}), "k", redlock.ErrHeld)
	// The password is changed under a client that is connected.
	r.set(5, "requirepass", "other")
	each(r, 5, r.Nodes, func(n *Node) error { return n.Drop() })
	r.within(ttl, "the refusal is told", func() bool {
		_, err := knows.TryLock(t.Context(), "other")
		return errors.Is(err, redlock.ErrNoQuorum) &&
			strings.Contains(err.Error(), "refused the password")
	})
	r.set(5, "requirepass", "secret")
	r.free(r.takeWithin(2*ttl, knows, "other"))
	r.must(ignore(l.Unlock(t.Context()), redlock.ErrLost))
}

// Rights are taken away under a held lock, and given back.
func TestNoRights(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithUser("user locks on >secret ~* &* +@all"))
	urls := r.URLs("redis", "locks:secret")
	c := r.admitted(redlock.Config{Addrs: urls, TTL: 6 * time.Second})
	l := r.take(c, "k")
	r.do(2, "ACL", "SETUSER", "locks", "-@scripting")
	r.free(r.take(c, "a minority refuses"))
	r.do(5, "ACL", "SETUSER", "locks", "-@scripting")
	r.says(c, "other", 3, "lacks rights")
	if err := l.Extend(t.Context()); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("extend: %v, want ErrNoQuorum", err)
	}
	r.held(l)
	r.do(5, "ACL", "SETUSER", "locks", "+@scripting")
	r.must(l.Extend(t.Context()))
	r.free(l)
}

// taskforcesh/bullmq 265; redis/redis-py 375: nodes that are busy with somebody's script.
func TestBusy(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithConfig("lua-time-limit 100"))
	c := r.admitted(redlock.Config{TTL: 12 * time.Second, NodeTimeout: time.Second})
	l := r.take(c, "k")
	var looping sync.WaitGroup
	defer looping.Wait()
	loop := func(n *Node) error {
		looping.Go(func() { // its answer comes with SCRIPT KILL, or we stop listening; it goes on
			_, _ = n.Do(context.Background(), "EVAL", "while true do end", 0)
		})
		r.within(10*time.Second, "the node says that it is busy", func() bool {
			_, err := n.Do(t.Context(), "GET", "k")
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		})
		return nil
	}
	r.must(loop(r.Nodes[0]))
	r.free(r.take(c, "one is busy"))
	r.must(loop(r.Nodes[1]), loop(r.Nodes[2]))
	r.says(c, "three are busy", 3, "busy")
	if err := l.Extend(t.Context()); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("extend: %v, want ErrNoQuorum", err)
	}
	r.held(l)
	r.do(3, "SCRIPT", "KILL")
	began := time.Now()
	r.free(r.takeWithin(time.Minute, c, "three were busy"))
	t.Logf("normal %v after the kill", time.Since(began).Round(time.Millisecond))
	r.must(l.Extend(t.Context()))
	r.free(l)
}

// redis/go-redis 1131: a node that loads its data says LOADING. What it has when it is back, a data
// set of old, gives no vote to a rival of a live lock.
func TestLoading(t *testing.T) {
	t.Parallel()
	r := on(t, 5, WithConfig("save 3600 1", "rdbcompression no",
		"loading-process-events-interval-bytes 1024", "key-load-delay 100"))
	a, b := r.admitted(redlock.Config{TTL: time.Minute}), r.open(redlock.Config{TTL: time.Minute})
	r.do(3, "EVAL", "for i = 1, 6000 do redis.call('SET', 'filler' .. i, i) end", 0)
	r.must(r.Nodes[3].Pause(), r.Nodes[4].Pause())
	r.do(3, "SAVE") // without the lock
	r.do(3, "CONFIG", "SET", "save", "")
	l := r.take(a, "k", redlock.WithoutRenewal())
	each(r, 3, r.Nodes, (*Node).Kill)
	r.must(r.Nodes[3].Unpause(), r.Nodes[4].Unpause())
	loaded := make(chan error, 3)
	for _, n := range r.Nodes[:3] {
		go func() { loaded <- n.Start() }()
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
	r.says(b, "k", 3, "memory is new") // they are asked again, and wait
	r.held(l)
}

// redis/go-redis 3228; leandromoreira/redlock-rb 27: after SCRIPT FLUSH pipelines failed for ever.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	c := r.admitted(redlock.Config{})
	l := r.take(c, "k")
	for range 50 {
		r.do(3, "SCRIPT", "FLUSH")
		r.must(l.Extend(t.Context()))
		r.do(3, "SCRIPT", "FLUSH")
		r.free(r.take(c, "other"))
	}
	r.do(5, "SCRIPT", "FLUSH")
	r.free(l)
	r.gone(ttl, "k")
}

// samcook/RedLock.net 48 and 93, second case: FLUSHALL under a held lock. It is told at its next
// renewal, and until then the nodes do not vote for anybody else.
func TestFlushAll(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	began := time.Now()
	r.do(5, "FLUSHALL")
	if !s.rival(r, b, 5*ttl) {
		t.Fatal("the nodes do not vote any more")
	}
	if took := time.Since(began); took < ttl-100*time.Millisecond {
		t.Errorf("the rival has it after %v, want MaxTTL, %v", took, ttl)
	}
	r.lostWithin(0, s.first)
	r.free(s.second)
}

// A minority is flushed: the holder's key is put back.
func TestFlushAllOfAMinority(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	r.do(2, "FLUSHALL")
	if s.rival(r, b, 2*ttl) {
		t.Error("the rival has it")
	}
	r.held(s.first)
	r.free(s.first)
}

// go-redsync/redsync 125, 107, 124: the name is a hash of the application's.
func TestWrongType(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	c := r.admitted(redlock.Config{})
	r.do(2, "HSET", "k", "the application's", "data")
	r.free(r.take(c, "k"))
	r.do(5, "HSET", "k", "the application's", "data")
	r.says(c, "k", 3, "not a lock")
	each(r, 5, r.Nodes, func(n *Node) error {
		data, err := n.Do(t.Context(), "HGET", "k", "the application's")
		if err == nil && data != "data" {
			err = errors.New("the application's data is gone")
		}
		return err
	})
}

// mike-marcacci/node-redlock 65, 11: nodes that cannot write to disk refuse all writes.
func TestNoDisk(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	c := r.admitted(redlock.Config{TTL: time.Minute})
	first, second := r.take(c, "first"), r.take(c, "second")
	refuseWrites := func(n *Node) {
		r.must(n.LoseDisk(), n.ConfigSet(t.Context(), "save", "3600 1"))
		_, err := n.Do(t.Context(), "BGSAVE")
		r.must(err)
		r.within(10*time.Second, "the save has failed", func() bool {
			info, _ := n.Do(t.Context(), "INFO", "persistence")
			text, _ := info.(string)
			return strings.Contains(text, "rdb_last_bgsave_status:err")
		})
	}
	refuseWrites(r.Nodes[0])
	r.free(first)
	refuseWrites(r.Nodes[1])
	refuseWrites(r.Nodes[2])
	r.says(c, "other", 3, "refuses writes")
	if err := second.Unlock(t.Context()); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("unlock: %v, want ErrNoQuorum", err)
	}
	r.set(3, "save", "")
	r.free(second) // may be repeated
	r.gone(10*time.Second, "first")
	r.gone(10*time.Second, "second")
}

// A node that is to have replicas and has none refuses writes.
func TestNotEnoughReplicas(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	c := r.admitted(redlock.Config{})
	r.set(1, "min-replicas-to-write", 1)
	r.free(r.take(c, "one refuses"))
	r.set(3, "min-replicas-to-write", 1)
	r.says(c, "k", 2, "without enough replicas")
	r.set(3, "min-replicas-to-write", 0)
	r.free(r.takeWithin(2*ttl, c, "k"))
}

// mike-marcacci/node-redlock 294, 61: members of one Redis Cluster given as if independent.
func TestMembersOfACluster(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	members := ForTest(t, 2, WithConfig("cluster-enabled yes"))
	mixed := r.open(redlock.Config{Addrs: append(r.Addrs(), members.Addrs()...)})
	_ = mixed.Admit(t.Context()) // of the three
	r.free(r.takeWithin(2*ttl, mixed, "k"))
	refused := 0
	for _, n := range mixed.Nodes(t.Context()) {
		if n.Err != nil && strings.Contains(n.Err.Error(), "not an independent node") {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d nodes are refused as members of a cluster, want 2", refused)
	}
	alone := r.open(redlock.Config{Addrs: members.Addrs()})
	r.says(alone, "k", 1, "not an independent node")
}

// One server behind two addresses never gives two votes.
func TestOneServerTwice(t *testing.T) {
	t.Parallel()
	r := on(t, 2)
	ways, err := r.Ways()
	r.must(err)
	c := r.open(redlock.Config{Addrs: []string{r.Nodes[0].Addr(), ways[0].Addr(), r.Nodes[1].Addr()}})
	_ = c.Admit(t.Context())
	r.free(r.takeWithin(3*ttl, c, "k")) // of two servers, both
	r.must(r.Nodes[1].Kill())
	if round := r.refused(c, "k", redlock.ErrNoQuorum); round.Votes > 1 {
		t.Errorf("%d votes of one server", round.Votes)
	}
}
