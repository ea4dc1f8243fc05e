package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Faults that users of comparable libraries reported, as tests: here what happens to nodes in
// operation, as far as it can be seen without a real server, and names.

// sibson/redbeat 230, 92, 218: a renewal interval near the lease, and a lost lease that ended the
// process.
func TestCaseImpossiblePairsAreRefusedAndALossIsNoEnd(t *testing.T) {
	t.Parallel()
	t.Run("refused with both numbers", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			cfg  redlock.Config
			says []string
		}{
			{redlock.Config{TTL: 9 * time.Second, RenewEvery: 9 * time.Second}, []string{"RenewEvery 9s", "3s"}},
			{redlock.Config{TTL: 10 * time.Second, RenewEvery: 7 * time.Second}, []string{"RenewEvery 7s", "10s"}},
			{redlock.Config{TTL: time.Second, NodeTimeout: 2 * time.Second}, []string{"NodeTimeout 2s", "250ms"}},
		} {
			c.cfg.Addrs = []string{"a:1", "b:1", "c:1"}
			_, err := redlock.New(c.cfg)
			wantIs(t, err, redlock.ErrInvalid)
			for _, want := range c.says {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
		}
	})
	t.Run("able to win again", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			for range 3 {
				l, err := u.Lock(r.within(time.Minute), "k")
				if err != nil {
					t.Fatal(err)
				}
				u.cut(true, 0, 1, 2)
				<-l.Lost()
				u.cut(false, 0, 1, 2)
			}
		})
	})
}

// redis/go-redis 790; envoyproxy/ratelimit 1191: connections to a demoted node answered READONLY
// till the process was restarted.
func TestCaseDemotedNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{TTL: time.Second})
		r.warm(u)
		r.nodes[0].Demote(r.nodes[4])
		r.wantIs(r.take(u, "k").Unlock(r.Context()))
		for _, n := range r.nodes[1:3] {
			n.Demote(r.nodes[4])
		}
		err := r.try(u, "k")
		r.wantIs(err, redlock.ErrNoQuorum)
		if errs := r.round(err).Errs; len(errs) != 3 || errs[0].Node != "node0:6379" {
			t.Errorf("got %v, want the three that were demoted", err)
		}
		for _, n := range r.nodes[:3] {
			n.Promote()
		}
		// They forgot what they voted for, so they wait for MaxTTL; then all is as before. Those that
		// were a replica may have had one of their own: another ten seconds.
		if _, err := u.Lock(r.within(30*time.Second), "k"); err != nil {
			t.Errorf("after the repair: %v", err)
		}
	})
}

// taskforcesh/bullmq 265; redis/redis-py 375; redis/go-redis 1131: BUSY from somebody's slow
// script, and LOADING at a start: workers never recovered.
func TestCaseBusyAndLoadingNodes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"LOADING Redis is loading the dataset in memory",
	} {
		for _, nodes := range []int{1, 3} {
			code, _, _ := strings.Cut(text, " ")
			t.Run(fmt.Sprint(code, " on ", nodes), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) {
					u := r.user(redlock.Config{})
					l := r.take(u, "held")
					time.Sleep(3 * time.Second) // just before a renewal
					for _, n := range r.nodes[:nodes] {
						n.Refuse(text)
					}
					err := r.try(u, "k")
					if nodes == 1 {
						r.wantIs(err)
					} else {
						r.wantIs(err, redlock.ErrNoQuorum)
						if text := fmt.Sprint(err); strings.Count(text, code) != 1 ||
							!strings.Contains(text, "; nodes node0:6379, node1:6379, node2:6379: ") {
							t.Errorf("got %q, want %s of three nodes", text, code)
						}
					}
					time.Sleep(2 * time.Second)
					for _, n := range r.nodes[:nodes] {
						n.Refuse("")
					}
					time.Sleep(time.Second)
					r.take(u, "k2")
					r.wantKeys("k2", 5)
					time.Sleep(time.Minute)
					r.wantHeld(l)
					r.wantIs(l.Unlock(r.Context()))
				})
			})
		}
	}
}

// mike-marcacci/node-redlock 294, 61; leandromoreira/redlock-rb 63; samcook/RedLock.net 91, 107:
// members of one Redis Cluster given as independent nodes were seen only as "no quorum".
func TestCaseMembersOfAClusterAreNamedAsSuch(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"MOVED 3999 10.0.0.2:6381", "ASK 3999 10.0.0.2:6381",
		"CLUSTERDOWN The cluster is down", "CROSSSLOT Keys in request don't hash to the same slot"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				u := r.user(redlock.Config{})
				for _, n := range r.nodes {
					n.Refuse(text)
				}
				err := r.try(u, "k")
				r.wantIs(err, redlock.ErrNoQuorum)
				for _, node := range r.round(err).Errs {
					if !strings.Contains(node.Error(), "not an independent node") ||
						!strings.Contains(node.Error(), node.Node) {
						t.Errorf("got %v, want it to say what is wrong, with the address", node)
					}
				}
				r.wantKeys("k", 0)
			})
		})
	}
	t.Run("the same server twice", func(t *testing.T) {
		t.Parallel()
		_, err := redlock.New(redlock.Config{Addrs: []string{"localhost:6379", "b:1", "127.0.0.1:6379"}})
		wantIs(t, err, redlock.ErrInvalid)
		if !strings.Contains(fmt.Sprint(err), "Addrs[0] and Addrs[2]") {
			t.Errorf("got %v, want both places named", err)
		}
	})
}

// redis/go-redis 1737, 3289: after a restart all retries were spent on dead connections; after a
// long outage only "pool timeout" came back.
func TestCaseRestartsAndOutages(t *testing.T) {
	t.Parallel()
	t.Run("connections that break cost no round", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			r.warm(u)
			for _, n := range r.nodes[:3] {
				var once sync.Once
				n.Faults().BreakReplies(func(calls int) int {
					left := calls
					once.Do(func() { left = 0 })
					return left
				})
			}
			r.take(u, "k")
		})
	})
	t.Run("a minute without a majority under 64 callers", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{})
			r.warm(u)
			for i, n := range r.nodes[:3] {
				if i == 0 {
					n.Faults().Down(true)
				} else {
					n.Faults().Partition(true)
				}
			}
			over := time.Now().Add(time.Minute)
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					for time.Now().Before(over) {
						if err := r.try(u, fmt.Sprint("k", i)); !errors.Is(err, redlock.ErrNoQuorum) {
							t.Errorf("got %v, want ErrNoQuorum", err)
						}
						time.Sleep(time.Second)
					}
				})
			}
			all.Wait()
			for _, n := range r.nodes[:3] {
				n.Faults().Clear()
			}
			time.Sleep(time.Second)
			r.take(u, "k")
			r.wantKeys("k", 5)
		})
	})
}

// go-co-op/gocron 472, 710, as far as it is about names: they must not collide, and two
// applications are kept apart by their prefix.
func TestCaseNamesAndPrefixesKeepLocksApart(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		one, two := r.user(redlock.Config{Prefix: "one:"}), r.user(redlock.Config{Prefix: "two:"})
		none := r.user(redlock.Config{})
		r.take(one, "job")
		r.take(two, "job")
		r.take(none, "job")
		r.wantIs(r.try(none, "one:job"), redlock.ErrHeld)
		r.wantIs(r.try(r.user(redlock.Config{Prefix: "one:"}), "job"), redlock.ErrHeld)
		for _, key := range []string{"one:job", "two:job", "job"} {
			if _, there := r.nodes[0].Get(key); !there {
				t.Errorf("no key %q", key)
			}
		}
	})
}
