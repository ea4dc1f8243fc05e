package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Waiting for a lock that somebody holds, and being woken.

const long = 30 * time.Second // a TTL that no waiter may have to wait for

// waits lets c wait for the name; the result comes when it has it, or gave up.
func (r *rig) waits(ctx context.Context, c *redlock.Client, name string) <-chan waited {
	r.Helper()
	got := make(chan waited, 1)
	go func() {
		l, err := c.Lock(ctx, name)
		got <- waited{l, err, time.Now()}
	}()
	r.within(10*time.Second, "it waits", func() bool {
		status, err := c.Inspect(r.Context(), name)
		return err == nil && status.Waiters > 0
	})
	return got
}

type waited struct {
	lock *redlock.Lock
	err  error
	at   time.Time
}

// miintto/redis-lock-py 3; redisson/redisson 5070: a release fell between the refused try and the
// subscription, and the waiter slept until the time-out.
func TestAWaiterIsWokenByTheRelease(t *testing.T) {
	t.Parallel()
	drop := func(n *Node) error { return n.Drop() }
	cut := func(n *Node) error { return n.Cut() }
	slow := func(n *Node) error { return n.Slow(200*time.Millisecond, 0) }
	for what, fault := range map[string]func(r *rig){
		"all well":            func(*rig) {},
		"subscriptions end":   func(r *rig) { each(r, 5, r.Nodes, drop) },
		"two nodes dead":      func(r *rig) { each(r, 2, r.Nodes, (*Node).Kill) },
		"two nodes frozen":    func(r *rig) { each(r, 2, r.Nodes, (*Node).Pause) },
		"three subscriptions": func(r *rig) { each(r, 3, r.Nodes, drop) },
		"two nodes restarted": func(r *rig) {
			each(r, 2, r.Nodes, (*Node).Kill)
			each(r, 2, r.Nodes, (*Node).Start)
		},
		"subscribers are cut":  func(r *rig) { r.do(5, "CLIENT", "KILL", "TYPE", "pubsub") },
		"two nodes are cut":    func(r *rig) { each(r, 2, r.Nodes, cut) },
		"two nodes are slower": func(r *rig) { each(r, 2, r.Nodes, slow) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := on(t, 5)
			cfg := redlock.Config{TTL: long, NodeTimeout: time.Second}
			a, b := r.admitted(cfg), r.open(cfg)
			l := r.take(a, "k")
			got := r.waits(t.Context(), b, "k")
			// A waiter looks also by the clock: after 1, 3, and 7 s. So long after 3 s it is the
			// release that wakes it.
			if r.becomes(3200*time.Millisecond, func() bool { return len(got) > 0 }) {
				t.Fatalf("it ended before the release: %+v", <-got)
			}
			fault(r)
			freed := time.Now()
			r.free(l)
			w := <-got
			r.must(w.err)
			took := w.at.Sub(freed)
			t.Logf("woken after %v", took.Round(time.Millisecond))
			if took > 2*time.Second {
				t.Errorf("the waiter has it %v after the release: its next look by the clock", took)
			}
			r.free(w.lock)
		})
	}
}

func TestAWaiterGetsADeadHoldersLockWhenItsKeysEnd(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	l := r.take(a, "k")
	until := l.Until()
	_, err := l.Detach() // as good as dead
	r.must(err)
	w := <-r.waits(t.Context(), b, "k")
	r.must(w.err)
	if w.at.Before(until) {
		t.Errorf("taken %v before the dead one's validity was over", until.Sub(w.at))
	}
	if late := w.at.Sub(until); late > ttl {
		t.Errorf("taken %v after it ended", late)
	}
	r.free(w.lock)
}

// bsm/redislock 79; go-redsync/redsync 98, 83.
func TestAWaiterThatGivesUpIsToldWhy(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	l := r.take(a, "k")
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	_, err := b.Lock(ctx, "k")
	if !errors.Is(err, redlock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrHeld and the context's end", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	got := r.waits(ctx, b, "k")
	cancel()
	if w := <-got; !errors.Is(w.err, redlock.ErrHeld) || !errors.Is(w.err, context.Canceled) {
		t.Errorf("got %v, want ErrHeld and the cancel", w.err)
	}
	r.free(l)
	r.free(r.takeWithin(ttl, b, "k"))
}

// redis/rueidis 602, 457; redisson/redisson 2575: waiters burned a CPU, and subscriptions stayed.
func TestManyWaitersAreServedInTurnAndLeaveNothing(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	cfg := redlock.Config{TTL: long, NodeTimeout: 3 * time.Second}
	a, b, c := r.admitted(cfg), r.open(cfg), r.open(cfg)
	l := r.take(a, "k")
	const each = 25
	var served atomic.Int32
	var inside room
	var waiters sync.WaitGroup
	for _, client := range []*redlock.Client{b, c} {
		for range each {
			waiters.Go(func() {
				err := client.Do(t.Context(), "k", func(ctx context.Context, l *redlock.Lock) error {
					inside.use(ctx, t, l)
					served.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		r.within(20*time.Second, "all wait", func() bool {
			status, err := client.Inspect(t.Context(), "k")
			return err == nil && status.Waiters == each
		})
	}
	r.do(5, "CONFIG", "RESETSTAT")
	const watched = 3 * time.Second
	time.Sleep(watched) // what is counted is what they do in this time
	for i, n := range r.Nodes {
		if calls := r.calls(n); calls > 2*int(watched.Seconds())*10 {
			t.Errorf("node %d was asked %d times in %v by two that wait", i, calls, watched)
		}
	}
	r.free(l)
	waiters.Wait()
	if n := served.Load(); n != 2*each {
		t.Errorf("%d were served, want %d", n, 2*each)
	}
	r.within(15*time.Second, "nobody listens any more", func() bool {
		for _, n := range r.Nodes {
			channels, err := n.Do(t.Context(), "PUBSUB", "CHANNELS", "ql:free:*")
			r.must(err)
			if list, _ := channels.([]any); len(list) > 0 {
				return false
			}
		}
		return true
	})
}

// calls is how many scripts a node was asked to run.
func (r *rig) calls(n *Node) (calls int) {
	r.Helper()
	info, err := n.Do(r.Context(), "INFO", "commandstats")
	r.must(err)
	for line := range strings.Lines(info.(string)) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			fmt.Sscanf(rest, "%d", &calls)
		}
	}
	return calls
}

// The nodes are away while somebody waits.
func TestAWaiterOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	l := r.take(a, "k")
	got := r.waits(t.Context(), b, "k")
	each(r, 3, r.Nodes, (*Node).Kill)
	r.lostWithin(ttl+time.Second, l)
	each(r, 3, r.Nodes, (*Node).StartEmpty)
	select {
	case w := <-got:
		r.must(w.err)
		if w.lock.Token() <= l.Token() {
			t.Errorf("token %d after %d", w.lock.Token(), l.Token())
		}
		r.free(w.lock)
	case <-time.After(8 * ttl):
		t.Fatal("it still waits")
	}
}
