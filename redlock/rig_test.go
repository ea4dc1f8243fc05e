package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A rig is a quorum of fake nodes in a bubble, and clients over it. Its nodes vote at once, and
// have to wait after a restart, like any.
type rig struct {
	*testing.T
	nodes []*fakenode.Node
}

// inBubble runs a test on n nodes in virtual time. A goroutine that is left behind fails it.
func inBubble(t *testing.T, n int, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t}
		for i := range n {
			r.nodes = append(r.nodes, fakenode.New(fmt.Sprintf("node%d:6379", i)))
		}
		test(r)
	})
}

// A user is a client with its own ways to the nodes and clocks of its own: a process.
type user struct {
	*redlock.Client
	links []*fakenode.Link
	clock *steppedClock
}

// user makes one. The zero Config is fine.
func (r *rig) user(cfg redlock.Config) *user {
	r.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	u := &user{clock: &steppedClock{}}
	var nodes []quorum.Node
	for _, n := range r.nodes {
		link := n.Link()
		u.links = append(u.links, link)
		nodes = append(nodes, link)
		r.admit(n, cfg.Prefix)
	}
	made, err := door.NewClient(cfg, nodes, u.clock)
	if err != nil {
		r.Fatal(err)
	}
	u.Client = made.(*redlock.Client)
	r.Cleanup(func() { u.Close() })
	return u
}

// admit makes a node which nobody asked yet vote at once.
func (r *rig) admit(n *fakenode.Node, prefix string) {
	key := prefix + "ql:node"
	if n.Hash(key) == nil {
		since := fmt.Sprint(n.Now().Add(-1000 * time.Hour).UnixMicro())
		n.SetHash(key, map[string]string{
			"id": n.Identity(), "since": since, "from": since, "max": "0", "floor": since}, 0)
	}
}

// cut parts the user from these nodes, or heals that.
func (u *user) cut(parted bool, nodes ...int) {
	for _, i := range nodes {
		u.links[i].Faults().Partition(parted)
	}
}

// A steppedClock is a machine's clocks, of which the test can step either.
type steppedClock struct{ mono, wall atomic.Int64 }

func (c *steppedClock) Now() clock.Reading {
	now := clock.System{}.Now()
	now.Mono += time.Duration(c.mono.Load())
	now.Wall += time.Duration(c.wall.Load())
	return now
}

// stepWall steps the wall clock. Forward is also what a suspended machine sees: its monotonic
// clock stood still.
func (c *steppedClock) stepWall(d time.Duration) { c.wall.Add(int64(d)) }

// take takes a lock that must be free, and lets instant nodes finish what they do for it.
func (r *rig) take(u *user, name string, opts ...redlock.LockOption) *redlock.Lock {
	r.Helper()
	l, err := u.TryLock(r.Context(), name, opts...)
	if err != nil {
		r.Fatalf("TryLock(%q): %v", name, err)
	}
	synctest.Wait()
	return l
}

// holds puts a key on all nodes that none of the users has.
func (r *rig) holds(name, token string, ttl time.Duration) {
	for _, n := range r.nodes {
		n.Set(name, token, ttl)
	}
}

// warm lets the user and the nodes meet: a first contact takes more than one round trip.
func (r *rig) warm(u *user) {
	r.Helper()
	r.wantIs(r.take(u, "warm").Unlock(r.Context()))
	synctest.Wait()
}

// within is a context that ends after d.
func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	r.Cleanup(cancel)
	return ctx
}

// try is TryLock without its lock.
func (r *rig) try(u *user, name string, opts ...redlock.LockOption) error {
	_, err := u.TryLock(r.Context(), name, opts...)
	return err
}

// kinds are all errors that errors.Is is asked about.
var kinds = []struct {
	name string
	err  error
}{
	{"ErrHeld", redlock.ErrHeld},
	{"ErrNoQuorum", redlock.ErrNoQuorum},
	{"ErrLost", redlock.ErrLost},
	{"ErrNotHeld", redlock.ErrNotHeld},
	{"ErrClosed", redlock.ErrClosed},
	{"ErrInvalid", redlock.ErrInvalid},
	{"context.Canceled", context.Canceled},
	{"context.DeadlineExceeded", context.DeadlineExceeded},
}

// wantIs wants err to match these errors, and none of the others. None: no error.
func (r *rig) wantIs(err error, want ...error) {
	r.Helper()
	wantIs(r.T, err, want...)
}

func wantIs(t *testing.T, err error, want ...error) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Errorf("got error %v, want none", err)
	}
	for _, kind := range kinds {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == kind.err
		}
		if got := errors.Is(err, kind.err); got != wanted {
			t.Errorf("got error %v: matches %s: %v, want %v", err, kind.name, got, wanted)
		}
	}
}

// round is the RoundError in err.
func (r *rig) round(err error) *redlock.RoundError {
	r.Helper()
	var round *redlock.RoundError
	if !errors.As(err, &round) {
		r.Fatalf("got error %v, want a RoundError", err)
	}
	return round
}

// wantKeys wants that many nodes to have the key.
func (r *rig) wantKeys(name string, want int) {
	r.Helper()
	got := 0
	for _, n := range r.nodes {
		if _, there := n.Get(name); there {
			got++
		}
	}
	if got != want {
		r.Errorf("%d nodes have the key of %q, want %d", got, name, want)
	}
}

// wantTook wants the time since began to be between low and high.
func (r *rig) wantTook(began time.Time, low, high time.Duration) {
	r.Helper()
	if took := time.Since(began); took < low || took > high {
		r.Errorf("took %v, want between %v and %v", took, low, high)
	}
}

// wantLost wants the lock to be over, as lost.
func (r *rig) wantLost(l *redlock.Lock) {
	r.Helper()
	if left := l.Remaining(); left > 0 {
		r.Errorf("%v remaining, want none", left)
	}
	select {
	case <-l.Lost():
	default:
		r.Error("Lost is not closed")
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, redlock.ErrLost) {
		r.Errorf("cause %v, want ErrLost", cause)
	}
}

// wantHeld wants the lock to be held.
func (r *rig) wantHeld(l *redlock.Lock) {
	r.Helper()
	if left := l.Remaining(); left <= 0 {
		r.Errorf("%v remaining, want some; cause %v", left, context.Cause(l.Context()))
	}
	if err := l.Context().Err(); err != nil {
		r.Errorf("context: %v: %v", err, context.Cause(l.Context()))
	}
}

// freeze stops the nodes for d: they take requests and do nothing.
func freeze(d time.Duration, nodes ...*fakenode.Node) {
	for _, n := range nodes {
		n.Pause()
	}
	time.AfterFunc(d, func() {
		for _, n := range nodes {
			n.Resume()
		}
	})
}

// slow makes every answer of the node take d.
func slow(d time.Duration, nodes ...*fakenode.Node) {
	for _, n := range nodes {
		n.Faults().DelayReplies(fakenode.Fixed(d))
	}
}

// A diary writes down what an Observer is told.
type diary struct {
	mu    sync.Mutex
	lines []string
	lost  []redlock.Event
	nodes []redlock.NodeChange
	round []redlock.Round
}

func (d *diary) observer() *redlock.Observer {
	write := func(format string, args ...any) {
		d.lines = append(d.lines, fmt.Sprintf(format, args...))
	}
	return &redlock.Observer{
		Round: func(r redlock.Round) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.round = append(d.round, r)
		},
		Gained: func(e redlock.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			write("gained %s", e.Name)
		},
		Lost: func(e redlock.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lost = append(d.lost, e)
			write("lost %s", e.Name)
		},
		Freed: func(e redlock.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			write("freed %s", e.Name)
		},
		Node: func(c redlock.NodeChange) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.nodes = append(d.nodes, c)
		},
	}
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, ", ")
}

func (d *diary) rounds() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.round)
}

func (d *diary) losses() []redlock.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]redlock.Event(nil), d.lost...)
}

// A logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
