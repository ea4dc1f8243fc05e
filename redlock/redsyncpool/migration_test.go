package redsyncpool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// The way in docs/migrating-from-redsync.md: replicas of both libraries on the same nodes.

// onEachKind runs the test on nodes inside this process, and on redis-server where there is one.
func onEachKind(t *testing.T, test func(*testing.T, []string)) {
	t.Run("nodes=embedded", func(t *testing.T) {
		t.Parallel()
		test(t, embedded.ForTest(t, 5).Addrs())
	})
	t.Run("nodes=redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, redisproc.ForTest(t, 5).Addrs())
	})
}

// A replica is one process of the service: the new program's, or the old one's.
type replica struct {
	ours   *redlock.Client
	other  *redsync.Redsync
	expiry time.Duration // of redsync's locks
}

// start is a replica with clients of its own, with which it makes both libraries' objects, as the
// program in the middle of the migration does.
func start(t *testing.T, addrs []string, ttl time.Duration) replica {
	t.Helper()
	clients := clientsOf(t, addrs)
	ours, err := redlock.New(redlock.Config{
		Clients: clients, TTL: ttl,
		NodeTimeout: min(ttl/4, 3*time.Second), // busy machines are not what is tested here
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ours.Close(); err != nil {
			t.Error(err)
		}
	})
	return replica{ours: ours, other: redsync.New(poolsOf(t, clients...)...), expiry: ttl}
}

// inUse are two replicas over nodes that vote.
func inUse(t *testing.T, addrs []string) (a, b replica) {
	t.Helper()
	a, b = start(t, addrs, time.Minute), start(t, addrs, time.Minute)
	admit(t, a.ours)
	return a, b
}

// admit says that the nodes may vote; again where a busy machine's node answers late, which changes
// nothing.
func admit(t *testing.T, c *redlock.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		err := c.Admit(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A resource is what the lock protects: it notices when two are in it.
type resource struct {
	inside  atomic.Int32
	doubles atomic.Int32
}

func (r *resource) use() {
	if r.inside.Add(1) > 1 {
		r.doubles.Add(1)
	}
	// Long enough that a second holder would be met.
	<-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond)
	r.inside.Add(-1)
}

// oldProgram does its turns under redsync, with that library's own way of waiting.
func (p replica) oldProgram(ctx context.Context, name string, turns int, use func()) error {
	for done := 0; done < turns; {
		m := p.other.NewMutex(name, redsync.WithExpiry(p.expiry),
			redsync.WithRetryDelayFunc(func(int) time.Duration { return 5 * time.Millisecond }))
		err := m.LockContext(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("after %d of %d turns of redsync: %w", done, turns, ctx.Err())
		}
		if err != nil {
			continue // its tries are used up
		}
		use()
		if ok, err := m.UnlockContext(ctx); !ok {
			return fmt.Errorf("redsync: unlock: %w", err)
		}
		done++
	}
	return nil
}

// newProgram does its turns under redlock.
func (p replica) newProgram(ctx context.Context, name string, turns int, use func()) error {
	for range turns {
		err := p.ours.Do(ctx, name, func(context.Context, *redlock.Lock) error { use(); return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

func TestReplicasOfBothLibrariesExcludeEachOther(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, addrs []string) {
		const turns = 100 // by each of two replicas of each library
		a, b := inUse(t, addrs)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var shared resource
		var replicas sync.WaitGroup
		for _, p := range []replica{a, b} {
			for _, program := range []func(context.Context, string, int, func()) error{
				p.oldProgram, p.newProgram,
			} {
				replicas.Go(func() {
					if err := program(ctx, "invoices", turns, shared.use); err != nil {
						t.Error(err)
					}
				})
			}
		}
		replicas.Wait()
		if n := shared.doubles.Load(); n > 0 {
			t.Errorf("%d times two were in it, want never", n)
		}
	})
}

// One of each tries for one name at the same moment, hundreds of times.
func TestOfTwoAtOneMomentNeverBoth(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, addrs []string) {
		const rounds, least = 500, 50
		a, b := inUse(t, addrs)
		won := map[string]int{}
		near, all := 0, 0
		for ; near < rounds && all < 10*rounds; all++ {
			winner, apart := oneElection(t, a, b, fmt.Sprint("job ", all), all)
			if t.Failed() {
				return
			}
			if apart <= time.Millisecond { // what a busy machine pulled apart was no election
				near++
				won[winner]++
			}
		}
		t.Logf("of %d, %d within 1 ms, by winner: %v", all, near, won)
		if near < rounds || won["redlock"] < least || won["redsync"] < least {
			t.Errorf("%d within 1 ms, by winner: %v; want %d, and %d of each, or the test tested little",
				near, won, rounds, least)
		}
	})
}

// oneElection lets one of them start at once, and the other up to a millisecond later. It returns
// who won, and how far apart they did start.
func oneElection(
	t *testing.T, a, b replica, name string, round int,
) (winner string, apart time.Duration) {
	t.Helper()
	m := b.other.NewMutex(name, redsync.WithTries(1), redsync.WithExpiry(time.Minute))
	late := time.Duration(rand.IntN(1000)) * time.Microsecond
	var l *redlock.Lock
	var ourErr, otherErr error
	var oursAt, otherAt time.Time
	start := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		<-start
		lag(round%2 == 0, late)
		oursAt = time.Now()
		l, ourErr = a.ours.TryLock(t.Context(), name)
	})
	both.Go(func() {
		<-start
		lag(round%2 == 1, late)
		otherAt = time.Now()
		otherErr = m.Lock()
	})
	close(start)
	both.Wait()
	apart = oursAt.Sub(otherAt).Abs()
	switch {
	case ourErr == nil && otherErr == nil:
		t.Errorf("%s: both have it, started %v apart: redlock for %v, redsync until %v", name,
			apart, l.Remaining(), m.Until())
	case ourErr == nil:
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return "redlock", apart
	case !errors.Is(ourErr, redlock.ErrHeld) && !errors.Is(ourErr, redlock.ErrNoQuorum):
		t.Errorf("%s: redlock says %v, want that it is held, or split", name, ourErr)
	case otherErr == nil:
		if ok, err := m.Unlock(); !ok {
			t.Errorf("%s: redsync: unlock: %v", name, err)
		}
		return "redsync", apart
	}
	return "nobody", apart
}

// lag sleeps, because with few processors one that spins keeps everybody else from running.
func lag(isLate bool, d time.Duration) {
	if isLate {
		time.Sleep(d)
	}
}

// What the one holds the other sees, and cannot free.
func TestEachSeesTheOthersLock(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, addrs []string) {
		a, b := inUse(t, addrs)
		m := b.other.NewMutex("k", redsync.WithTries(1), redsync.WithExpiry(time.Minute))
		if err := m.Lock(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.ours.TryLock(t.Context(), "k"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("redlock says %v, want ErrHeld", err)
		}
		if ok, err := m.Extend(); !ok {
			t.Errorf("redsync: extend: %v", err)
		}
		if ok, err := m.Unlock(); !ok {
			t.Errorf("redsync: unlock: %v", err)
		}
		l, err := a.ours.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var taken *redsync.ErrTaken
		if err := m.Lock(); !errors.As(err, &taken) {
			t.Errorf("redsync says %v, want ErrTaken", err)
		}
		if ok, _ := m.Unlock(); ok {
			t.Error("redsync says it freed what it does not hold")
		}
		if err := errors.Join(l.Extend(t.Context()), l.Unlock(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
