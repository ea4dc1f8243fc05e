package sim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A world is the nodes and clients of one schedule.
type world struct {
	*Plan
	counts  *Counts
	watch   *Watch
	nodes   []*fakenode.Node
	clients []*client
	events  atomic.Int64
	over    chan struct{} // closed when the actors have gone
}

// A client is one process that takes locks.
type client struct {
	*redlock.Client
	name  string
	links []*fakenode.Link
	clock *wrongClock
}

// A wrongClock is the bubble's clock, with a wall clock that may be off and be stepped.
type wrongClock struct{ offset atomic.Int64 }

// Now reads both clocks.
func (c *wrongClock) Now() clock.Reading {
	now := time.Duration(time.Now().UnixNano())
	return clock.Reading{Mono: now - epoch, Wall: now + time.Duration(c.offset.Load())}
}

// epoch is where the bubble's time begins, 2000-01-01, so that monotonic readings are short.
const epoch = 946684800 * time.Second

// mostSkew is how wrong the nodes' clocks are at the start: well within what tokens allow, half of
// MaxTTL between any two, also after they drifted for a while.
func (w *world) mostSkew() time.Duration { return w.TTL / 16 }

// drift is how far nodes' clocks go apart: within the drift factor of 0.01, and with the guard on
// by less than the clock watch takes for a step.
func (w *world) drift() float64 {
	if w.Guard {
		return 0.0004
	}
	return 0.018
}

func newWorld(p *Plan, counts *Counts) (*world, error) {
	w := &world{Plan: p, counts: counts, watch: newWatch(), over: make(chan struct{})}
	r := p.rand(clockStream)
	for i := range p.Nodes {
		n := fakenode.New(fmt.Sprintf("node%d:6379", i+1))
		if !p.Guard && !p.Blind {
			n.GuardFor(p.TTL)
		}
		if p.Skew {
			n.StepClock(upTo(r, w.mostSkew()))
			n.Drift((r.Float64() - 0.5) * w.drift())
		}
		w.nodes = append(w.nodes, n)
	}
	for i := range p.Clients {
		c, err := w.newClient(fmt.Sprintf("c%d", i+1))
		if err != nil {
			return nil, err
		}
		if p.Skew {
			c.clock.offset.Store(int64(upTo(r, 2*time.Hour) - time.Hour))
		}
		w.clients = append(w.clients, c)
	}
	if p.Guard {
		// An operator's word, else nothing happens for MaxTTL.
		if err := w.clients[0].Admit(context.Background()); err != nil {
			return nil, err
		}
	}
	if p.Amnesia {
		return w, w.meet()
	}
	return w, nil
}

func (w *world) newClient(name string) (*client, error) {
	c := &client{name: name, clock: &wrongClock{}}
	var nodes []quorum.Node
	for _, n := range w.nodes {
		link := n.Link()
		c.links = append(c.links, link)
		nodes = append(nodes, link)
	}
	made, err := door.NewClient(redlock.Config{
		TTL:                 w.TTL,
		NodeTimeout:         w.NodeTimeout,
		Identity:            name,
		MaxTTL:              w.maxTTL(name),
		DisableRestartGuard: !w.Guard,
		Logger:              slog.New(slog.DiscardHandler),
		Observer: &redlock.Observer{Lost: func(e redlock.Event) {
			w.counts.Lost.Add(1)
			w.watch.note(name, fmt.Sprintf("lost %s %d", e.Name, e.Token), e.Err)
		}},
	}, nodes, c.clock)
	if err != nil {
		return nil, err
	}
	c.Client = made.(*redlock.Client)
	if w.Load {
		door.Engine(made).AssumeLoad()
	}
	return c, nil
}

// event is called after everything that somebody did.
func (w *world) event(who, what string, err error) {
	w.events.Add(1)
	w.watch.note(who, what, err)
	w.watch.Look()
}

// tick looks all the time, until the schedule is over.
func (w *world) tick() {
	ticker := time.NewTicker(w.TTL / 50)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
		case <-w.over:
			return
		}
		w.watch.Look()
		if i%25 == 0 {
			w.watch.Keys(w.nodes)
		}
	}
}

// run lets the actors do their work under changing weather, and then sees what is left.
func (w *world) run() {
	var actors, others sync.WaitGroup
	for i, c := range w.clients {
		for j := range w.Actors {
			a := w.newActor(c, i*w.Actors+j)
			actors.Go(a.run)
		}
	}
	others.Go(w.tick)
	others.Go(newWeather(w).run)
	actors.Wait()
	close(w.over)
	others.Wait()
	w.calm()
	w.settle()
	w.finish()
}
