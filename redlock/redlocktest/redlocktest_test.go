package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

func client(t *testing.T, q *redlocktest.Quorum, cfg redlock.Config) *redlock.Client {
	t.Helper()
	c, err := q.Client(cfg)
	if err != nil {
		t.Fatalf("Client: %v", err)
	}
	return c
}

func take(t *testing.T, c *redlock.Client, name string) *redlock.Lock {
	t.Helper()
	l, err := c.TryLock(t.Context(), name)
	if err != nil {
		t.Fatalf("TryLock(%q): %v", name, err)
	}
	return l
}

func wantIs(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("got error %v, want one that matches %v", err, target)
		}
	}
}

// The example for users: a worker that must stop when its lock is lost, in virtual time.
func TestWorkerStopsWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := redlocktest.Start(t, 5)
		c, err := q.Client(redlock.Config{TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Minute, func() {
			for _, n := range q.Nodes()[:3] {
				n.Cut()
			}
		})
		err = c.Do(t.Context(), "report", func(ctx context.Context, _ *redlock.Lock) error {
			<-ctx.Done() // the worker
			return nil
		})
		if !errors.Is(err, redlock.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if took := time.Since(began); took < time.Minute || took > 70*time.Second {
			t.Errorf("lost after %v, want within a TTL of the cut at 1m", took)
		}
	})
}

func TestFreshNodesVoteAtOnce(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "app:"} {
		t.Run("prefix="+prefix, func(t *testing.T) {
			t.Parallel()
			q := redlocktest.Start(t, 3)
			c := client(t, q, redlock.Config{Prefix: prefix})
			take(t, c, "a")
			wantIs(t, errOf(client(t, q, redlock.Config{Prefix: prefix}).TryLock(t.Context(), "a")),
				redlock.ErrHeld)
		})
	}
}

func errOf(_ *redlock.Lock, err error) error { return err }

func TestNodesThatStart(t *testing.T) {
	t.Parallel()
	t.Run("with their memory keep a lock", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			q := redlocktest.Start(t, 3)
			l := take(t, client(t, q, redlock.Config{}), "a")
			rival := client(t, q, redlock.Config{DisableRestartGuard: true})
			for _, n := range q.Nodes() {
				n.Stop()
			}
			time.Sleep(time.Second)
			wantIs(t, errOf(rival.TryLock(t.Context(), "a")), redlock.ErrNoQuorum)
			for _, n := range q.Nodes() {
				n.Start()
			}
			time.Sleep(20 * time.Second)
			if l.Remaining() <= 0 {
				t.Errorf("the lock is lost: %v", context.Cause(l.Context()))
			}
			wantIs(t, errOf(rival.TryLock(t.Context(), "a")), redlock.ErrHeld)
		})
	})
	t.Run("without their memory have forgotten it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			q := redlocktest.Start(t, 3)
			l := take(t, client(t, q, redlock.Config{}), "a")
			for _, n := range q.Nodes() {
				n.StartEmpty()
			}
			<-l.Lost()
			if took, err := l.Remaining(), context.Cause(l.Context()); took > 0 ||
				!errors.Is(err, redlock.ErrLost) {
				t.Errorf("remaining %v, cause %v; want a lost lock", took, err)
			}
			rival := client(t, q, redlock.Config{DisableRestartGuard: true})
			take(t, rival, "a")
		})
	})
}

func TestDelayIsOfTheWholeAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := redlocktest.Start(t, 3)
		c := client(t, q, redlock.Config{})
		take(t, c, "warm") // the first contact takes another round trip
		for _, n := range q.Nodes()[:2] {
			n.Delay(31 * time.Millisecond)
		}
		began := time.Now()
		l := take(t, c, "a")
		if took := time.Since(began); took != 31*time.Millisecond {
			t.Errorf("TryLock took %v, want 31ms", took)
		}
		for _, n := range q.Nodes() {
			n.Delay(0)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCutsAreForTheNamedClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := redlocktest.Start(t, 3)
		a, b := client(t, q, redlock.Config{}), client(t, q, redlock.Config{})
		for _, n := range q.Nodes()[1:] {
			n.Cut(a)
		}
		wantIs(t, errOf(a.TryLock(t.Context(), "a")), redlock.ErrNoQuorum)
		take(t, b, "b")
		for _, n := range q.Nodes()[1:] {
			n.Heal(a)
		}
		time.Sleep(time.Second)
		take(t, a, "a")

		for _, n := range q.Nodes()[1:] {
			n.Cut()
			n.Cut(b)
		}
		time.Sleep(time.Minute)
		wantIs(t, errOf(a.TryLock(t.Context(), "a2")), redlock.ErrNoQuorum)
		wantIs(t, errOf(b.TryLock(t.Context(), "b2")), redlock.ErrNoQuorum)
		for _, n := range q.Nodes()[1:] {
			n.Heal()
		}
		time.Sleep(time.Second)
		take(t, a, "a2")
		take(t, b, "b2")
	})
}

func TestLostRepliesAreOfDoneWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := redlocktest.Start(t, 1)
		c := client(t, q, redlock.Config{})
		rival := client(t, q, redlock.Config{})
		take(t, c, "warm")
		q.Node(0).LoseReplies(1)
		wantIs(t, errOf(c.TryLock(t.Context(), "a")), redlock.ErrNoQuorum)
		// The key that the lost reply was about is freed in the background, and not before.
		l, err := rival.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if l.Remaining() <= 0 {
			t.Error("not held")
		}
	})
}

func TestClocksOfClientsStepApart(t *testing.T) {
	t.Parallel()
	q := redlocktest.Start(t, 3)
	a, b := client(t, q, redlock.Config{}), client(t, q, redlock.Config{})
	la, lb := take(t, a, "a"), take(t, b, "b")
	q.StepClock(a, time.Minute)
	if la.Remaining() > 0 {
		t.Errorf("a minute later: %v remaining, want none", la.Remaining())
	}
	if lb.Remaining() <= 0 {
		t.Error("the other client's lock is lost as well")
	}
}

// errorsOf is a TB that keeps what it is told.
type errorsOf struct{ told []string }

func (e *errorsOf) Helper()        {}
func (e *errorsOf) Cleanup(func()) {}
func (e *errorsOf) Errorf(format string, args ...any) {
	e.told = append(e.told, fmt.Sprintf(format, args...))
}

func TestMisuseFailsTheTestAndNeverPanics(t *testing.T) {
	t.Parallel()
	misuse := func(q *redlocktest.Quorum) {
		for _, i := range []int{-1, 3, 1 << 40} {
			n := q.Node(i)
			n.Stop()
			n.Start()
			n.StartEmpty()
			n.Delay(-time.Second)
			n.LoseReplies(-1)
			n.Cut()
			n.Heal()
		}
		q.Node(0).Cut(nil)
		q.Node(0).Heal(&redlock.Client{})
		q.StepClock(nil, time.Hour)
	}
	t.Run("told to t", func(t *testing.T) {
		t.Parallel()
		var told errorsOf
		q := redlocktest.Start(&told, 3)
		client(t, q, redlock.Config{})
		misuse(q)
		if len(told.told) != 6 {
			t.Errorf("told %q, want 6 errors", told.told)
		}
	})
	t.Run("or by Close", func(t *testing.T) {
		t.Parallel()
		q := redlocktest.Start(nil, 3)
		client(t, q, redlock.Config{})
		misuse(q)
		for range 2 {
			if err := q.Close(); err == nil || strings.Count(err.Error(), "redlocktest:") != 6 {
				t.Errorf("Close: got %v, want 6 errors", err)
			}
		}
	})
	t.Run("a quorum without nodes has no clients", func(t *testing.T) {
		t.Parallel()
		for _, q := range []*redlocktest.Quorum{{}, redlocktest.Start(t, 0), redlocktest.Start(t, -3),
			redlocktest.Start(t, 65)} {
			if _, err := q.Client(redlock.Config{}); !errors.Is(err, redlock.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		}
	})
	t.Run("a bad Config is refused as by redlock.New", func(t *testing.T) {
		t.Parallel()
		q := redlocktest.Start(t, 3)
		if _, err := q.Client(redlock.Config{TTL: -1}); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
		// Nodes that are named all the same are not asked.
		take(t, client(t, q, redlock.Config{Addrs: []string{"not an address"}}), "a")
	})
}

func TestNodesAreNamedInErrors(t *testing.T) {
	t.Parallel()
	q := redlocktest.Start(t, 3)
	c := client(t, q, redlock.Config{})
	q.Node(1).Stop()
	q.Node(2).Stop()
	_, err := c.TryLock(t.Context(), "a")
	var round *redlock.RoundError
	if !errors.As(err, &round) || len(round.Errs) != 2 || round.Errs[0].Node != q.Node(1).Name() ||
		round.Errs[1].Node != q.Node(2).String() {
		t.Errorf("got %v, want the errors of %v and %v", err, q.Node(1), q.Node(2))
	}
}
