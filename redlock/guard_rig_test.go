package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A process is a user that nobody introduced to the nodes: it meets them as a real one does. Its
// addresses can lead elsewhere, and its machine can be suspended.
type process struct {
	user
	addrs   []*address
	machine *machine
	log     *logbook
	diary   *diary
}

// process makes one over the rig's nodes, with names of their own for the addresses.
func (r *rig) process(cfg redlock.Config) *process {
	r.Helper()
	p := &process{machine: &machine{}, log: &logbook{}, diary: &diary{}}
	cfg.Logger, cfg.Observer = p.log.logger(), p.diary.observer()
	var nodes []quorum.Node
	for _, n := range r.nodes {
		link := n.Link()
		p.links = append(p.links, link)
		a := &address{name: n.Name(), link: link}
		p.addrs = append(p.addrs, a)
		nodes = append(nodes, a)
	}
	made, err := door.NewClient(cfg, nodes, p.machine)
	if err != nil {
		r.Fatal(err)
	}
	p.Client = made.(*redlock.Client)
	r.Cleanup(func() { p.Close() })
	return p
}

// old lets the nodes' memories begin long ago, as in a cluster that was in use for long.
func (r *rig) old() {
	for _, n := range r.nodes {
		r.admit(n, "")
	}
}

// An address leads to a server, and perhaps to another one later. It is one connection for its
// whole life, unless fresh is set.
type address struct {
	name string

	mu    sync.Mutex // guards below
	link  *fakenode.Link
	fresh bool
}

var _ quorum.Node = (*address)(nil)

// lead makes the address lead to another server from now on.
func (a *address) lead(to *fakenode.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.link = to.Link()
}

func (a *address) to() *fakenode.Link {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link
}

func (a *address) Name() string { return a.name }
func (a *address) Close() error { return a.to().Close() }

func (a *address) Exec(ctx context.Context, batch *quorum.Batch) error {
	return a.to().Exec(ctx, batch)
}

func (a *address) Describe(ctx context.Context) (quorum.Facts, error) { return a.to().Describe(ctx) }

func (a *address) Listen(heard func(quorum.Heard)) quorum.Listener { return a.to().Listen(heard) }

func (a *address) Fresh() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := a.fresh
	a.fresh = false
	return fresh
}

// A machine has clocks that stand still while it is suspended.
type machine struct {
	mu         sync.Mutex // guards all below
	mono, wall time.Duration
	stopped    clock.Reading // zero: it runs
}

func (m *machine) Now() clock.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped.IsZero() {
		return m.stopped
	}
	return m.read()
}

func (m *machine) read() clock.Reading {
	now := clock.System{}.Now()
	return clock.Reading{Mono: now.Mono + m.mono, Wall: now.Wall + m.wall}
}

// step steps the wall clock.
func (m *machine) step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall += d
}

// suspend stops the clocks. What is on its way to others arrives.
func (m *machine) suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = m.read()
}

// wake lets them run again: from where they stopped, or with a wall clock that knows better.
func (m *machine) wake(wallKnows bool) (missed time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	missed = m.read().Mono - m.stopped.Mono
	m.mono -= missed
	if !wallKnows {
		m.wall -= missed
	}
	m.stopped = clock.Reading{}
	return missed
}

// sleep suspends the process' machine for d, cut off from everybody.
func (p *process) sleep(d time.Duration, wallKnows bool) {
	p.machine.suspend()
	for i := range p.links {
		p.cut(true, i)
	}
	time.Sleep(d)
	for i := range p.links {
		p.cut(false, i)
	}
	p.machine.wake(wallKnows)
	synctest.Wait()
}

// wantOne wants at most one of the locks to be valid.
func (r *rig) wantOne(locks ...*redlock.Lock) {
	r.Helper()
	var valid []string
	for i, l := range locks {
		if left := l.Remaining(); left > 0 {
			valid = append(valid, fmt.Sprintf("%d (token %d, %v left)", i, l.Token(), left))
		}
	}
	if len(valid) > 1 {
		r.Errorf("held by several at once: %v", valid)
	}
}

// wantNoVote wants the try to fail for want of votes, and returns what it says.
func (r *rig) wantNoVote(err error) *redlock.RoundError {
	r.Helper()
	r.wantIs(err, redlock.ErrNoQuorum)
	if err == nil {
		r.FailNow()
	}
	return r.round(err)
}

// near reports whether two spans differ by no more than a tenth of a second.
func near(got, want time.Duration) bool { return (got - want).Abs() <= 100*time.Millisecond }

// flushAll is FLUSHALL: the data goes, the process and its identity stay.
func flushAll(n *fakenode.Node) {
	for _, key := range n.Keys() {
		n.Delete(key.Name)
	}
}
