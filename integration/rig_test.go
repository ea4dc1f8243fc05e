package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Time is the machine's own, so the spans are long enough for a busy one, and what has to come is
// waited for with a deadline.

// ttl is for tests that wait for a TTL or for renewals; each node may take a quarter of it to
// answer.
const ttl = 3 * time.Second

// A rig is some nodes, and clients over them.
type rig struct {
	*testing.T
	*Cluster
}

func on(t *testing.T, count int, opts ...Option) *rig {
	t.Helper()
	c := ForTest(t, count, opts...)
	exercise(t, c.Nodes)
	return &rig{T: t, Cluster: c}
}

// open makes a client. Without nodes of its own it gets the cluster's; without a TTL, ttl.
func (r *rig) open(cfg redlock.Config) *redlock.Client {
	r.Helper()
	if cfg.Addrs == nil && cfg.Clients == nil {
		cfg.Addrs = r.Addrs()
	}
	if cfg.TTL == 0 {
		cfg.TTL = ttl
	}
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = min(cfg.TTL/4, 3*time.Second)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := redlock.New(cfg)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Close() }) // nodes may be down by now: what it says is no fault
	return c
}

// admitted is a client over nodes that have been in use for long.
func (r *rig) admitted(cfg redlock.Config) *redlock.Client {
	r.Helper()
	c := r.open(cfg)
	r.admit(c)
	return c
}

// admit says that all nodes may vote. On a machine that has just started many servers some answer
// late; said again, it changes nothing.
func (r *rig) admit(c *redlock.Client) {
	r.Helper()
	r.within(20*time.Second, "all nodes are admitted",
		func() bool { return c.Admit(r.Context()) == nil })
}

// apart is a client with ways of its own, on which it can be cut off alone.
func (r *rig) apart(cfg redlock.Config) (*redlock.Client, Ways) {
	r.Helper()
	ways, err := r.Ways()
	r.must(err)
	cfg.Addrs = ways.Addrs()
	return r.open(cfg), ways
}

func (r *rig) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// each does one thing to the first count nodes, or ways.
func each[T any](r *rig, count int, of []T, do func(T) error) {
	r.Helper()
	for i, one := range of[:count] {
		if err := do(one); err != nil {
			r.Fatalf("node %d: %v", i, err)
		}
	}
}

// take takes a lock that must be free.
func (r *rig) take(c *redlock.Client, name string, opts ...redlock.LockOption) *redlock.Lock {
	r.Helper()
	l, err := c.TryLock(r.Context(), name, opts...)
	r.must(err)
	return l
}

// takeWithin takes a lock that is to become free, or whose nodes are to vote, within d.
func (r *rig) takeWithin(d time.Duration, c *redlock.Client, name string) *redlock.Lock {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	l, err := c.Lock(ctx, name)
	r.must(err)
	return l
}

// refused wants no lock, for this reason.
func (r *rig) refused(c *redlock.Client, name string, want error) *redlock.RoundError {
	r.Helper()
	l, err := c.TryLock(r.Context(), name)
	if l != nil || !errors.Is(err, want) {
		r.Fatalf("%s: got %v, %v; want %v", name, l, err, want)
	}
	if want == redlock.ErrNoQuorum && errors.Is(err, redlock.ErrHeld) {
		r.Errorf("%s: %v is both busy and broken", name, err)
	}
	var round *redlock.RoundError
	if !errors.As(err, &round) {
		r.Fatalf("got a %T, want a RoundError", err)
	}
	return round
}

// says wants that the lock is refused without a quorum, and at least so many nodes say these words. A
// node that was just given another state may answer late, or be kept from asking by its last error
// until it is probed, so it is asked again until then; each time the lock must be refused.
func (r *rig) says(c *redlock.Client, name string, least int, words string) *redlock.RoundError {
	r.Helper()
	var round *redlock.RoundError
	if !r.becomes(10*time.Second, func() bool {
		round = r.refused(c, name, redlock.ErrNoQuorum)
		n := 0
		for _, e := range round.Errs {
			if strings.Contains(e.Error(), words) {
				n++
			}
		}
		return n >= least
	}) {
		r.Fatalf("fewer than %d nodes say %q: %v", least, words, round)
	}
	return round
}

// quick takes and frees so many locks, and wants that no node which gives no answer was waited for:
// each wait would be NodeTimeout, here of a client with ttl.
func (r *rig) quick(c *redlock.Client, count int) {
	r.Helper()
	began := time.Now()
	for i := range count {
		r.free(r.take(c, fmt.Sprint("beside it ", i)))
	}
	took := time.Since(began)
	r.Logf("%d locks meanwhile: %v", count, took.Round(time.Millisecond))
	// Once, until it is known that the nodes are silent; for the rest, what a busy machine takes.
	if took > ttl/4+time.Duration(count)*ttl/8 {
		r.Errorf("%d locks took %v: nodes that do not answer are waited for", count, took)
	}
}

func (r *rig) free(l *redlock.Lock) {
	r.Helper()
	r.must(l.Unlock(r.Context()))
}

func (r *rig) held(l *redlock.Lock) {
	r.Helper()
	if left := l.Remaining(); left <= 0 || l.Context().Err() != nil {
		r.Errorf("%v remaining, want some; cause: %v", left, context.Cause(l.Context()))
	}
}

// lostWithin wants the lock to be lost within d, with the reason.
func (r *rig) lostWithin(d time.Duration, l *redlock.Lock) {
	r.Helper()
	if !r.becomes(d, func() bool { return l.Context().Err() != nil }) {
		r.Fatalf("not lost after %v, %v remaining", d, l.Remaining())
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, redlock.ErrLost) {
		r.Errorf("the context ended for %v, want ErrLost", cause)
	}
}

// within asks again and again until it is so.
func (r *rig) within(d time.Duration, what string, so func() bool) {
	r.Helper()
	if !r.becomes(d, so) {
		r.Fatalf("not within %v: %s", d, what)
	}
}

// becomes reports whether it is so at some time within d.
func (r *rig) becomes(d time.Duration, so func() bool) bool {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	return poll(ctx, so) == nil
}

// keys are the owner tokens under a name, by node; "" where there is none.
func (r *rig) keys(name string) []string {
	r.Helper()
	keys := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		owner, err := n.Do(r.Context(), "GET", name)
		r.must(err)
		keys[i], _ = owner.(string)
	}
	return keys
}

// everywhere waits until all nodes have a lock, as c sees them, and not one that is about to end. A
// busy node may answer a lock's round too late, and gets the key with the next renewal; one that
// stood still may have an old key. Until then the lock cannot lose any two of five.
func (r *rig) everywhere(c *redlock.Client, name string) {
	r.Helper()
	r.within(20*time.Second, fmt.Sprintf("all nodes have %q", name), func() bool {
		status, err := c.Inspect(r.Context(), name)
		if err != nil || status.Votes < status.Nodes {
			return false
		}
		byLeft := func(a, b redlock.NodeLock) int { return cmp.Compare(a.Remaining, b.Remaining) }
		least, most := slices.MinFunc(status.PerNode, byLeft), slices.MaxFunc(status.PerNode, byLeft)
		return least.Remaining >= most.Remaining/2
	})
}

// answering waits until all nodes answer c again, and vote.
func (r *rig) answering(c *redlock.Client) {
	r.Helper()
	r.within(20*time.Second, "all nodes answer, and vote", func() bool {
		return !slices.ContainsFunc(c.Nodes(r.Context()),
			func(n redlock.NodeStatus) bool { return n.Err != nil })
	})
}

// gone wants no node to have a key of the name for long: a release returns with a majority.
func (r *rig) gone(d time.Duration, name string) {
	r.Helper()
	r.within(d, fmt.Sprintf("no node has %q", name),
		func() bool { return strings.Join(r.keys(name), "") == "" })
}

// A room is what a lock protects: it notices when two are in it whose locks are valid.
type room struct {
	mu sync.Mutex
	in *redlock.Lock
}

// use is work under the lock, for long enough that somebody else would be met.
func (m *room) use(ctx context.Context, t *testing.T, l *redlock.Lock) {
	m.mu.Lock()
	other := m.in
	m.in = l
	m.mu.Unlock()
	if other != nil && other.Remaining() > 0 && l.Remaining() > 0 {
		t.Errorf("%s: two are in it, with tokens %d and %d", l.Name(), other.Token(), l.Token())
	}
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in == l {
		m.in = nil
	}
}

// A struggle is a lock that somebody holds, and a rival that tries for it all the time.
type struggle struct {
	first  *redlock.Lock
	second *redlock.Lock // won by the rival; nil: not yet
}

// contest takes a free lock, and waits until all nodes have it: any minority may fail then.
func (r *rig) contest(c *redlock.Client, name string) *struggle {
	r.Helper()
	s := &struggle{first: r.take(c, name)}
	r.everywhere(c, name)
	return s
}

// rival lets b try for the name for d, or until it has it. It wants the first to be over then: a
// validity has no gaps, and the second's has begun.
func (s *struggle) rival(r *rig, b *redlock.Client, d time.Duration) bool {
	r.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(10 * time.Millisecond) {
		l, err := b.TryLock(r.Context(), s.first.Name())
		if err != nil {
			if !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) {
				r.Fatalf("the rival is told %v", err)
			}
			continue
		}
		s.second = l
		if left := s.first.Remaining(); left > 0 && l.Remaining() > 0 {
			r.Errorf("two holders: the first for %v more", left)
		}
		if s.first.Context().Err() == nil {
			r.Error("the rival has it, and the first's context is not done")
		}
		if l.Token() <= s.first.Token() {
			r.Errorf("token %d after %d", l.Token(), s.first.Token())
		}
		return true
	}
	return false
}
