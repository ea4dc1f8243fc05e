package redlock_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// Under load a majority of the nodes goes first, and what is over before the others' turn comes is
// never sent to them (ADR 0012).

// behind is when the nodes behind have a lock at the latest, and a flight to them.
const behind = 25*time.Millisecond + 10*time.Millisecond

// A load is 64 callers who lock and unlock, each names of its own, as fast as the nodes let them.
type load struct {
	pairs  atomic.Int64
	ending atomic.Bool
	all    sync.WaitGroup
}

// load begins it, on nodes that take so long for a command.
func (r *rig) load(u *user, effort time.Duration) *load {
	r.Helper()
	for _, n := range r.nodes {
		n.Faults().Effort(effort)
	}
	l := &load{}
	for i := range 64 {
		l.all.Go(func() {
			for j := 0; !l.ending.Load(); j++ {
				lock, err := u.Lock(r.Context(), fmt.Sprint("load-", i, "-", j%8))
				if err != nil {
					r.Error(err)
					return
				}
				if err := lock.Unlock(r.Context()); err != nil {
					r.Error(err)
					return
				}
				l.pairs.Add(1)
			}
		})
	}
	time.Sleep(2 * behind)
	return l
}

func (l *load) end() {
	l.ending.Store(true)
	l.all.Wait()
}

// during is how many pairs there were in d.
func (l *load) during(d time.Duration) int64 {
	before := l.pairs.Load()
	time.Sleep(d)
	return l.pairs.Load() - before
}

func TestUnderLoadWhatIsOverIsNotSentToAllNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		acquires := func() (sum int64) {
			for _, n := range r.nodes {
				sum += int64(n.Count("acquire"))
			}
			return sum
		}
		l := r.load(u, 20*time.Microsecond)
		before := acquires()
		pairs := l.during(time.Second)
		sent := acquires() - before
		l.end()
		if sent < 3*pairs*95/100 || sent > 4*pairs {
			t.Errorf("%d acquires for %d locks, want those of a majority and few more", sent, pairs)
		}
		time.Sleep(2 * behind)
		for i := range 64 {
			r.wantKeys(fmt.Sprint("load-", i, "-0"), 0)
		}
	})
}

func TestUnderLoadAHeldLockIsOnAllNodesSoon(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		load := r.load(u, 20*time.Microsecond)
		for i := range 5 {
			l := r.take(u, fmt.Sprint("k", i))
			time.Sleep(behind)
			r.wantKeys(l.Name(), 5)
			r.wantIs(l.Extend(r.Context()))
			r.wantIs(l.Unlock(r.Context()))
			time.Sleep(2 * behind)
			r.wantKeys(l.Name(), 0)
		}
		load.end()
	})
}

// Half of its time is over for a message of a short lock before the nodes behind would have their
// turn.
func TestUnderLoadAShortLockIsOnAllNodesInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		load := r.load(u, 50*time.Microsecond) // the nodes behind have their turn every 25 ms
		for i := range 20 {
			l := r.take(u, fmt.Sprint("short", i), redlock.WithTTL(80*time.Millisecond),
				redlock.WithoutRenewal())
			time.Sleep(15 * time.Millisecond) // each message has 20
			r.wantKeys(l.Name(), 5)
			r.wantIs(l.Unlock(r.Context()))
		}
		load.end()
	})
}

// Any may be one that goes first.
func TestUnderLoadANodeThatIsOfNoUseIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(n *fakenode.Node){
		"stands still":     (*fakenode.Node).Pause, // for less than NodeTimeout: it is not known to fail
		"answers errors":   func(n *fakenode.Node) { n.Refuse("OOM command not allowed") },
		"has a new memory": (*fakenode.Node).Forget,
	} {
		for node := range 5 {
			t.Run(fmt.Sprint(what, "/", node), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) {
					u := r.user(redlock.Config{})
					load := r.load(u, 20*time.Microsecond)
					const span = 200 * time.Millisecond
					before := load.during(span)
					spoil(r.nodes[node])
					meanwhile := load.during(span)
					r.nodes[node].Resume()
					if meanwhile < before/2 {
						t.Errorf("%d locks in %v with node %d, %d before", meanwhile, span, node, before)
					}
					load.end()
				})
			})
		}
	}
}

// A rival's keys lie on a node in front, or on two behind: a majority is free all the same.
func TestUnderLoadAFewKeysOfARivalAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		load := r.load(u, 20*time.Microsecond)
		for first := range 5 {
			for _, n := range []*fakenode.Node{r.nodes[first], r.nodes[(first+1)%5]} {
				n.Set("k", "another's", time.Hour)
			}
			for range 5 {
				began := time.Now()
				l := r.take(u, "k")
				r.wantTook(began, 0, 8*time.Millisecond)
				r.wantIs(l.Unlock(r.Context()))
				r.wantTook(began, 0, 16*time.Millisecond)
			}
			for _, n := range r.nodes {
				n.Delete("k")
			}
		}
		load.end()
	})
}

// What is to stay for a while after Unlock stays on all nodes.
func TestUnderLoadAMinHoldIsOnAllNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		load := r.load(u, 20*time.Microsecond)
		l := r.take(u, "k", redlock.WithMinHold(time.Second))
		r.wantIs(l.Unlock(r.Context()))
		time.Sleep(2 * behind)
		r.wantKeys("k", 5)
		load.end()
	})
}

func TestWithoutLoadALockIsOnAllNodesAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.load(u, 20*time.Microsecond).end()
		for i := range 100 { // until it is known that the load is over
			r.wantIs(r.take(u, fmt.Sprint("after-", i)).Unlock(r.Context()))
		}
		time.Sleep(2 * behind)
		began := time.Now()
		l := r.take(u, "k")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		r.wantKeys("k", 5)
		r.wantTook(began, 0, 2*time.Millisecond)
		r.wantIs(l.Unlock(r.Context()))
	})
}
