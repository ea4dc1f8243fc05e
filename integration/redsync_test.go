package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redsyncpool"
)

// Both libraries on the same nodes, as during a migration: docs/migrating-from-redsync.md.

// both is a client of each library, with connections of their own.
func (r *rig) both(cfg redlock.Config) (*redlock.Client, *redsync.Redsync) {
	r.Helper()
	pools, err := redsyncpool.New(r.ownClients()...)
	r.must(err)
	return r.admitted(cfg), redsync.New(pools...)
}

// 500 rounds on one name in which both started within a millisecond, as measured.
func TestOfRedlockAndRedsyncNeverBoth(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	ours, other := r.both(redlock.Config{TTL: time.Minute, NodeTimeout: 3 * time.Second})
	const rounds, least = 500, 50
	won := map[string]int{}
	near, all := 0, 0
	for ; near < rounds && all < 10*rounds; all++ {
		winner, apart := r.election(ours, other, all)
		if apart <= time.Millisecond { // what a busy machine pulled apart was no election
			near++
			won[winner]++
		}
		r.gone(10*time.Second, "job") // one name: a release returns with a majority
	}
	t.Logf("of %d, %d within 1 ms, by winner: %v", all, near, won)
	if near < rounds || won["redlock"] < least || won["redsync"] < least {
		t.Errorf("%d within 1 ms, by winner: %v; want %d, and %d of each", near, won, rounds, least)
	}
}

// election lets one of them start at once, and the other up to a millisecond later. It returns who
// won, and how far apart they did start.
func (r *rig) election(
	ours *redlock.Client, other *redsync.Redsync, round int,
) (winner string, apart time.Duration) {
	r.Helper()
	m := other.NewMutex("job", redsync.WithTries(1), redsync.WithExpiry(time.Minute))
	var l *redlock.Lock
	var ourErr, otherErr error
	var oursAt, otherAt time.Time
	late := time.Duration(rand.IntN(1000)) * time.Microsecond
	start := make(chan struct{})
	var trying sync.WaitGroup
	trying.Go(func() {
		<-start
		spin(round%2 == 0, late)
		oursAt = time.Now()
		l, ourErr = ours.TryLock(r.Context(), "job")
	})
	trying.Go(func() {
		<-start
		spin(round%2 == 1, late)
		otherAt = time.Now()
		otherErr = m.Lock()
	})
	close(start)
	trying.Wait()
	apart = oursAt.Sub(otherAt).Abs()
	switch {
	case ourErr == nil && otherErr == nil:
		r.Fatalf("round %d: both, started %v apart: redlock for %v, redsync until %v", round, apart,
			l.Remaining(), m.Until())
	case ourErr == nil:
		r.free(l)
		return "redlock", apart
	case !errors.Is(ourErr, redlock.ErrHeld) && !errors.Is(ourErr, redlock.ErrNoQuorum):
		r.Fatalf("round %d: redlock is told %v", round, ourErr)
	case otherErr == nil:
		if ok, err := m.Unlock(); !ok {
			r.Fatalf("round %d: redsync: %v", round, err)
		}
		return "redsync", apart
	}
	return "nobody", apart
}

// spin, not sleep: a sleep would be longer than the millisecond that the round is about.
func spin(isLate bool, d time.Duration) {
	for end := time.Now().Add(d); isLate && time.Now().Before(end); {
	}
}

// The same under faults that lose no node's memory: what redsync holds on a majority, we never get.
func TestRedlockAndRedsyncUnderFaults(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]struct{ begin, end func(*Node) error }{
		"dead nodes":   {(*Node).Kill, nil},
		"frozen nodes": {(*Node).Pause, (*Node).Unpause},
		"cut nodes": {func(n *Node) error { return n.Cut() },
			func(n *Node) error { return n.Heal() }},
		"lost replies": {func(n *Node) error { return n.LoseReplies() },
			func(n *Node) error { return n.Heal() }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := on(t, 5)
			ours, other := r.both(redlock.Config{TTL: 20 * time.Second})
			r.free(r.take(ours, "warm"))
			each(r, 2, r.Nodes, fault.begin)
			for i := range 10 {
				m := r.others(other, "job", 20*time.Second)
				r.refused(ours, "job", redlock.ErrHeld)
				unlocked := make(chan error, 1)
				go func() { // redsync waits for all nodes: for the faulty ones until the clients give up
					ok, err := m.Unlock()
					if ok {
						err = nil
					}
					unlocked <- err
				}()
				l := r.takeWithin(25*time.Second, ours, "job")
				second := other.NewMutex("job", redsync.WithExpiry(20*time.Second), redsync.WithTries(1))
				if err := second.Lock(); err == nil {
					t.Fatalf("round %d: redsync has what redlock holds for %v", i, l.Remaining())
				}
				r.held(l)
				r.free(l)
				if i == 2 && fault.end != nil {
					each(r, 2, r.Nodes, fault.end)
					r.answering(ours)
				}
				if i >= 2 {
					r.must(<-unlocked)
				}
			}
		})
	}
}

// others is a mutex of redsync that is locked within a minute. Each try is a mutex with a value of
// its own: redsync's own tries share one, so that the release of a try that failed, late on a busy
// node, can free what the next try has got there.
func (r *rig) others(other *redsync.Redsync, name string, expiry time.Duration) *redsync.Mutex {
	r.Helper()
	var m *redsync.Mutex
	r.within(time.Minute, "redsync has "+name, func() bool {
		m = other.NewMutex(name, redsync.WithExpiry(expiry), redsync.WithTries(1))
		return m.Lock() == nil
	})
	return m
}

// Hundreds of turns, each library's in its own way of waiting.
func TestRedlockWaitsForRedsync(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	ours, other := r.both(redlock.Config{TTL: time.Minute, NodeTimeout: 3 * time.Second})
	// Redsync gives a node a twentieth of the expiry to answer: too little on a busy machine.
	m := other.NewMutex("job", redsync.WithExpiry(3*time.Second), redsync.WithTries(1),
		redsync.WithTimeoutFactor(0.5))
	r.must(m.Lock())
	until := m.Until()
	l := r.takeWithin(20*time.Second, ours, "job")
	if time.Now().Before(until) {
		t.Errorf("redlock has it %v before redsync's validity was over", time.Until(until))
	}
	var taken *redsync.ErrTaken
	if err := m.Lock(); !errors.As(err, &taken) {
		t.Errorf("redsync is told %v, want ErrTaken", err)
	}
	if ok, _ := m.Unlock(); ok {
		t.Error("redsync freed what redlock holds")
	}
	r.must(l.Extend(t.Context()))
	r.free(l)
	for i := range 50 {
		m := other.NewMutex(fmt.Sprint("turn ", i), redsync.WithExpiry(time.Minute))
		r.must(m.Lock())
		got := make(chan error, 1)
		go func() {
			l, err := ours.Lock(t.Context(), fmt.Sprint("turn ", i))
			if err == nil {
				err = l.Unlock(t.Context())
			}
			got <- err
		}()
		if ok, err := m.Unlock(); !ok {
			t.Fatal(err)
		}
		r.must(<-got)
	}
}
