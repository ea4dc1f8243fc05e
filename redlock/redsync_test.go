package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// Both libraries on the same nodes: whoever migrates runs replicas with either for a while, and
// they must exclude each other. The nodes are real servers over TCP, so time here is the machine's
// own; no test judges how fast something is, only what comes after what.

// both are a client of each library, with connections of their own to the same nodes.
type both struct {
	ours  *redlock.Client
	other *redsync.Redsync
}

// onEachKind runs the test on nodes inside this process, and on redis-server where there is one.
func onEachKind(t *testing.T, test func(*testing.T, both)) {
	t.Run("nodes=embedded", func(t *testing.T) {
		t.Parallel()
		test(t, openBoth(t, embedded.ForTest(t, 5).Addrs()))
	})
	t.Run("nodes=redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, openBoth(t, redisproc.ForTest(t, 5).Addrs()))
	})
}

func openBoth(t *testing.T, addrs []string) both {
	t.Helper()
	ours, err := redlock.New(redlock.Config{
		Addrs: addrs, MaxTTL: time.Minute,
		NodeTimeout:         2 * time.Second, // busy machines are not what is tested here
		DisableRestartGuard: true,            // the nodes have just started
		Logger:              slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ours.Close(); err != nil {
			t.Error(err)
		}
	})
	var pools []redis.Pool
	for _, addr := range addrs {
		client := goredislib.NewClient(&goredislib.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	return both{ours: ours, other: redsync.New(pools...)}
}

// mutex is one try for a lock of redsync's. Its own time-out of a round is a twentieth of the
// expiry; that, too, is about busy machines.
func (b both) mutex(name string, expiry time.Duration) *redsync.Mutex {
	return b.other.NewMutex(name, redsync.WithTries(1), redsync.WithExpiry(expiry),
		redsync.WithTimeoutFactor(0.4))
}

func mustLock(t *testing.T, m *redsync.Mutex) {
	t.Helper()
	if err := m.Lock(); err != nil {
		t.Fatalf("redsync: lock %s: %v", m.Name(), err)
	}
}

func mustUnlock(t *testing.T, m *redsync.Mutex) {
	t.Helper()
	if ok, err := m.Unlock(); !ok || err != nil {
		t.Fatalf("redsync: unlock %s: %v, %v", m.Name(), ok, err)
	}
}

func (b both) mustTry(t *testing.T, name string, opts ...redlock.LockOption) *redlock.Lock {
	t.Helper()
	l, err := b.ours.TryLock(t.Context(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALockOfRedsyncIsSeenAsHeld(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, b both) {
		const expiry = 30 * time.Second
		began := time.Now()
		m := b.mutex("job", expiry)
		mustLock(t, m)
		l, err := b.ours.TryLock(t.Context(), "job")
		if !errors.Is(err, redlock.ErrHeld) || l != nil {
			t.Fatalf("got %v, %v; want ErrHeld", l, err)
		}
		var round *redlock.RoundError
		if !errors.As(err, &round) {
			t.Fatalf("got a %T, want a RoundError", err)
		}
		if round.Holder != m.Value() {
			t.Errorf("holder %q, want redsync's value %q", round.Holder, m.Value())
		}
		least := expiry - time.Since(began) - time.Millisecond // nodes count in ms
		if round.Remaining > expiry || round.Remaining < least {
			t.Errorf("remaining %v, want from %v to %v", round.Remaining, least, expiry)
		}
		mustUnlock(t, m)
		if err := b.mustTry(t, "job").Unlock(t.Context()); err != nil {
			t.Errorf("unlock of what redsync had freed: %v", err)
		}
	})
}

func TestALockOfOursMakesRedsyncFail(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, b both) {
		l := b.mustTry(t, "job")
		for _, failFast := range []bool{false, true} {
			m := b.other.NewMutex("job", redsync.WithTries(1), redsync.WithFailFast(failFast))
			var taken *redsync.ErrTaken
			if err := m.Lock(); !errors.As(err, &taken) {
				t.Errorf("fail-fast %v: redsync says %v, want ErrTaken", failFast, err)
			}
		}
		if left := l.Remaining(); left <= 0 {
			t.Errorf("remaining %v after redsync has tried and cleaned up, want more than 0", left)
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Errorf("extend after redsync has tried: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := b.mutex("job", 8*time.Second)
		// Unlock returns at a majority; the rest follows at once.
		waitUntil(t, "redsync gets what we freed", func() bool { return m.Lock() == nil })
		mustUnlock(t, m)
	})
}

func TestUnlockOfOneNeverFreesTheOthers(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, b both) {
		// Ours has run out, redsync has it: our Unlock must leave it alone, and say so.
		const short = 1500 * time.Millisecond
		late := b.mustTry(t, "job", redlock.WithTTL(short), redlock.WithoutRenewal())
		m := b.mutex("job", 30*time.Second)
		waitUntil(t, "redsync gets our expired lock", func() bool { return m.Lock() == nil })
		err := late.Unlock(t.Context())
		if !errors.Is(err, redlock.ErrNotHeld) || !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("unlock of an expired lock that redsync has: %v, want ErrNotHeld and ErrHeld", err)
		}
		if ok, err := m.Extend(); !ok {
			t.Errorf("redsync lost its lock to our unlock: %v", err)
		}
		mustUnlock(t, m)

		// Redsync's has run out, ours has it. Its unlock compares values as ours does.
		gone := b.mutex("job", short)
		mustLock(t, gone)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		l, err := b.ours.Lock(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := gone.Unlock(); ok {
			t.Error("redsync says it unlocked what is ours")
		}
		if err := l.Extend(t.Context()); err != nil {
			t.Errorf("we lost our lock to redsync's unlock: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnExpiredLockOfRedsyncIsTaken(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, b both) {
		m := b.mutex("job", 1500*time.Millisecond)
		mustLock(t, m)
		var l *redlock.Lock
		waitUntil(t, "redsync's lock has expired", func() bool {
			var err error
			l, err = b.ours.TryLock(t.Context(), "job")
			if err != nil && !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) {
				t.Fatal(err)
			}
			return err == nil
		})
		if time.Now().Before(m.Until()) {
			t.Errorf("taken while redsync's validity still ran until %v", m.Until())
		}
		if l.Token() == 0 {
			t.Error("no fencing token after a holder without one")
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestBothAtTheSameMomentNeverBoth lets one contender of each library try for one name at once.
// Redsync alone may leave elections without a winner; two winners there must never be.
func TestBothAtTheSameMomentNeverBoth(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, b both) {
		const rounds = 200
		var oursWon, otherWon, nobody int
		for i := range rounds {
			name := fmt.Sprint("job ", i)
			m := b.other.NewMutex(name, redsync.WithTries(1), redsync.WithFailFast(i%2 == 1))
			var l *redlock.Lock
			var ourErr, otherErr error
			start := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				<-start
				l, ourErr = b.ours.TryLock(t.Context(), name)
			})
			wg.Go(func() {
				<-start
				otherErr = m.Lock()
			})
			close(start)
			wg.Wait()
			switch {
			case ourErr == nil && otherErr == nil:
				t.Fatalf("%s: both have it: ours for %v, redsync until %v", name, l.Remaining(), m.Until())
			case ourErr == nil:
				oursWon++
				if err := l.Unlock(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case otherErr == nil:
				otherWon++
				if !errors.Is(ourErr, redlock.ErrHeld) && !errors.Is(ourErr, redlock.ErrNoQuorum) {
					t.Errorf("%s: redsync has it, we are told %v", name, ourErr)
				}
				mustUnlock(t, m)
			default:
				nobody++
			}
		}
		t.Logf("of %d: ours %d, redsync %d, nobody %d", rounds, oursWon, otherWon, nobody)
		if oursWon == 0 && otherWon == 0 {
			t.Error("nobody ever won: the test tested nothing")
		}
	})
}

// TestLockWaitsForRedsync: redsync tells nobody when it frees a lock, so a waiting Lock has to look
// by itself, and to know when the keys end.
func TestLockWaitsForRedsync(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, b both) {
		for what, tc := range map[string]struct {
			expiry time.Duration
			unlock bool
		}{
			"until its unlock": {time.Minute, true},
			"until its expiry": {1500 * time.Millisecond, false},
		} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				name := "job " + strings.ReplaceAll(what, " ", "-")
				m := b.mutex(name, tc.expiry)
				mustLock(t, m)
				until := m.Until()
				type result struct {
					l   *redlock.Lock
					err error
					at  time.Time
				}
				got := make(chan result, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				go func() {
					l, err := b.ours.Lock(ctx, name)
					got <- result{l, err, time.Now()}
				}()
				if tc.unlock {
					select {
					case r := <-got:
						t.Fatalf("got %v, %v while redsync has it", r.l, r.err)
					case <-time.After(100 * time.Millisecond): // it has been told, and waits
					}
					mustUnlock(t, m)
					until = time.Now()
				}
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				if !tc.unlock && r.at.Before(until) {
					t.Errorf("got it %v before redsync's validity was over", until.Sub(r.at))
				}
				t.Logf("%v after it was free", r.at.Sub(until).Round(time.Millisecond))
				if err := r.l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// waitUntil asks again and again until it is so.
func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
