package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// Real redis-server processes: what they do under errors, restarts, stepped clocks and fail-over.
// Time is the machine's own, so the spans are long enough for a busy machine, and what has to come
// is waited for with a deadline. This file has the rig and the clocks; realnodes_error_test.go what
// servers answer when they are not well, realnodes_pair_test.go fail-over,
// realnodes_rights_test.go the rights of a user, realnodes_frozen_test.go frozen clients.

// A realRig is some real nodes, and clients over them.
type realRig struct {
	*testing.T
	servers redisproc.Nodes
}

func onRealNodes(t *testing.T, count int, opts ...redisproc.Option) *realRig {
	t.Helper()
	return &realRig{T: t, servers: redisproc.ForTest(t, count, opts...)}
}

// realTTL is for tests that wait for a TTL or for renewals. A quarter of it is what a node may take
// to answer.
const realTTL = 3 * time.Second

// open makes a client. Without nodes of its own it gets the rig's; without a TTL, realTTL.
func (r *realRig) open(cfg redlock.Config) *redlock.Client {
	r.Helper()
	if cfg.Addrs == nil && cfg.Clients == nil {
		cfg.Addrs = r.servers.Addrs()
	}
	if cfg.TTL == 0 {
		cfg.TTL = realTTL
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
func (r *realRig) admitted(cfg redlock.Config) *redlock.Client {
	r.Helper()
	c := r.open(cfg)
	r.admit(c)
	return c
}

// admit says that all nodes may vote; again where one answers late, which changes nothing.
func (r *realRig) admit(c *redlock.Client) {
	r.Helper()
	waitUntil(r.T, "the nodes are admitted", func() bool { return c.Admit(r.Context()) == nil })
}

func (r *realRig) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// take takes a lock that must be free.
func (r *realRig) take(c *redlock.Client, name string, opts ...redlock.LockOption) *redlock.Lock {
	r.Helper()
	l, err := c.TryLock(r.Context(), name, opts...)
	r.must(err)
	return l
}

// takeWithin takes a lock that is to become free, or whose nodes are to vote, within d.
func (r *realRig) takeWithin(d time.Duration, c *redlock.Client, name string) *redlock.Lock {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	l, err := c.Lock(ctx, name)
	r.must(err)
	return l
}

// refused wants no lock, for these reasons and no others.
func (r *realRig) refused(c *redlock.Client, name string, want ...error) *redlock.RoundError {
	r.Helper()
	_, err := c.TryLock(r.Context(), name)
	wantIs(r.T, err, want...)
	var round *redlock.RoundError
	if !errors.As(err, &round) {
		r.Fatalf("got error %v, want a RoundError", err)
	}
	return round
}

// meets lets a client see who holds the name, and the nodes' clocks with that.
func (r *realRig) meets(c *redlock.Client, name string) {
	r.Helper()
	waitUntil(r.T, "the name is seen as held", func() bool {
		_, err := c.TryLock(r.Context(), name)
		return errors.Is(err, redlock.ErrHeld)
	})
}

// gone wants no node to have a key of the name for long: a release returns with a majority.
func (r *realRig) gone(name string) {
	r.Helper()
	waitUntil(r.T, "no node has the key", func() bool { return strings.Join(r.keys(name), "") == "" })
}

func (r *realRig) free(l *redlock.Lock) {
	r.Helper()
	r.must(l.Unlock(r.Context()))
}

func (r *realRig) held(l *redlock.Lock) {
	r.Helper()
	if left := l.Remaining(); left <= 0 {
		r.Errorf("%v remaining, want some; cause: %v", left, context.Cause(l.Context()))
	}
}

// do sends one command to each of these nodes, as a user with all rights.
func (r *realRig) do(nodes []int, command ...any) (answer any) {
	r.Helper()
	for _, i := range nodes {
		got, err := r.servers[i].Do(r.Context(), command...)
		if err != nil {
			r.Fatalf("node %d: %v: %v", i, command, err)
		}
		answer = got
	}
	return answer
}

// keys are the owner tokens under a name, by node; "" where there is none.
func (r *realRig) keys(name string) []string {
	r.Helper()
	keys := make([]string, len(r.servers))
	for i := range r.servers {
		if owner, ok := r.do([]int{i}, "GET", name).(string); ok {
			keys[i] = owner
		}
	}
	return keys
}

// upTo are the numbers of the first n nodes.
func upTo(n int) (nodes []int) {
	for i := range n {
		nodes = append(nodes, i)
	}
	return nodes
}

// A struggle is one client that holds a name and another that tries for it all the time.
type struggle struct {
	first  *redlock.Lock
	second *redlock.Lock // won by the rival; nil: not yet
	double bool          // both were valid at one moment
}

// rival lets b try for the name for d, or until it has it.
func (s *struggle) rival(r *realRig, b *redlock.Client, d time.Duration) {
	r.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(10 * time.Millisecond) {
		l, err := b.TryLock(r.Context(), s.first.Name())
		if err != nil {
			continue
		}
		s.second = l
		// A validity has no gaps: the second is valid from before the first is asked to after it.
		s.double = s.first.Remaining() > 0 && l.Remaining() > 0
		return
	}
}

// valkey-io/valkey 2651: keys live by their node's wall clock, so that a step ends locks at once,
// or keeps them for an hour.
func TestRealClockStepped(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		for stepped := 1; stepped <= 3; stepped++ {
			t.Run(fmt.Sprintf("step=%v/nodes=%d", step, stepped), func(t *testing.T) {
				t.Parallel()
				checkStep(onRealNodes(t, 5, redisproc.WithClock()), step, stepped)
			})
		}
	}
}

func checkStep(r *realRig, step time.Duration, stepped int) {
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := &struggle{first: r.take(a, "k")}
	r.meets(b, "k")
	// A renewal between two of the steps would find a majority, and heal the rest.
	renewed := s.first.Until()
	waitUntil(r.T, "it is renewed", func() bool { return !s.first.Until().Equal(renewed) })
	for _, i := range upTo(stepped) {
		r.must(r.servers[i].StepClock(step))
	}
	at := time.Now()
	s.rival(r, b, realTTL)
	if stepped < 3 || step < 0 {
		// A minority that lost its keys, or a majority that keeps them too long.
		if s.double || s.second != nil {
			r.Errorf("the rival has it, both valid at once: %v", s.double)
		}
		r.held(s.first)
	} else {
		// What a majority shows at once is taken for a step of our own clock: the holder ends its
		// lock at its next renewal. Until then only the fencing token keeps the two apart.
		waitUntil(r.T, "the holder is told", func() bool { return s.first.Context().Err() != nil })
		if took := time.Since(at); took > realTTL/3+realTTL/4+2*time.Second {
			r.Errorf("the holder was told after %v, want it at its next renewal", took)
		}
		wantIs(r.T, context.Cause(s.first.Context()), redlock.ErrLost)
		r.Logf("the holder was told %v after the step; the rival had it before that: %v",
			time.Since(at).Round(time.Millisecond), s.double)
	}
	if stepped < 3 {
		odd := 0
		for _, n := range b.Nodes(r.Context()) {
			if n.Err != nil {
				odd++
			}
		}
		if odd != stepped && time.Since(at) < realTTL {
			r.Errorf("%d nodes give no vote, want the %d whose clock was stepped", odd, stepped)
		}
	}
	if s.second == nil {
		_ = s.first.Unlock(r.Context())
		s.second = r.takeWithin(4*realTTL, b, "k")
	}
	if s.second.Token() <= s.first.Token() {
		r.Errorf("token %d after %d", s.second.Token(), s.first.Token())
	}
}

// The second half of the same report: the holder is dead, and its keys stay for an hour on the
// nodes whose clocks were stepped back.
func TestRealClockSteppedBackUnderADeadHolder(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 5, redisproc.WithClock())
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	first := r.take(a, "k")
	r.meets(b, "k")
	_, err := first.Detach() // as good as dead: nobody renews it and nobody frees it
	r.must(err)
	for _, i := range upTo(2) {
		r.must(r.servers[i].StepClock(-time.Hour))
	}
	began := time.Now()
	second := r.takeWithin(4*realTTL, b, "k")
	t.Logf("taken %v after the holder's death", time.Since(began).Round(time.Millisecond))
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	owners := r.keys("k")
	if owners[2] != owners[3] || owners[3] != owners[4] || !strings.HasPrefix(owners[4], "ql1:") {
		t.Errorf("keys %q, want the second holder's on the three nodes with true clocks", owners)
	}
}
