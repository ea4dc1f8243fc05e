package ticksim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// A process is one life of a replica.
type process struct {
	*world
	slot   *slot
	name   string
	client *redlock.Client
	sched  *schedule.Scheduler
	spin   *spin
	clock  *wrongClock
	ways   []*way
	dead   atomic.Bool
	thaw   atomic.Int64 // when it goes on, as time.Time has it; past: it is not frozen

	mu    sync.Mutex // guards below
	dice  *rand.Rand
	fates map[string]*fate // by owner token of the claim
	ails  []span           // when something was wrong with it
}

// A span is a time in which something was wrong.
type span struct {
	from, to time.Time // to zero: to the end
	what     string
}

// A wrongClock is the bubble's clock, with a wall clock that is off.
type wrongClock struct{ offset atomic.Int64 }

// Now reads both clocks.
func (c *wrongClock) Now() clock.Reading {
	now := clock.System{}.Now()
	now.Wall += time.Duration(c.offset.Load())
	return now
}

func newProcess(s *slot, life int) *process {
	w := s.world
	p := &process{world: w, slot: s, name: fmt.Sprintf("r%d.%d", s.index, life),
		clock: &wrongClock{}, fates: make(map[string]*fate),
		dice: rand.New(rand.NewPCG(w.seed, uint64(wayStream+1000*s.index+100_000*life)))}
	p.clock.offset.Store(int64(between(p.dice, -mostSkew, mostSkew)))
	var nodes []quorum.Node
	for _, n := range w.nodes {
		way := &way{Link: n.Link(), process: p}
		way.Faults().DelayRequests(p.stays)
		way.Faults().DelayReplies(p.stays)
		p.ways = append(p.ways, way)
		nodes = append(nodes, way)
	}
	silent := slog.New(slog.DiscardHandler)
	p.spin = &spin{Logger: silent, world: w}
	made, err := door.NewClient(redlock.Config{Identity: p.name, Logger: silent}, nodes, p.clock)
	if err != nil {
		panic(err)
	}
	p.client = made.(*redlock.Client)
	p.sched, err = schedule.New(p.client, append(w.options(), schedule.WithLogger(silent),
		schedule.WithGocron(gocron.WithLogger(p.spin)),
		schedule.WithObserver(&schedule.Observer{Skipped: w.account.skipped}))...)
	if err != nil {
		panic(err)
	}
	for _, j := range w.jobs() {
		if _, err := p.sched.Add(j.name, j.when(), p.runner(j.runs)); err != nil {
			panic(err)
		}
	}
	w.account.born(p)
	p.sched.Start()
	return p
}

// stays is how much longer a message is on its way than the way takes: until the process goes on.
func (p *process) stays() time.Duration {
	left := time.Until(time.Unix(0, p.thaw.Load()))
	if left <= 0 {
		return 0
	}
	return left + time.Duration(rand.Int64N(int64(time.Millisecond)))
}

// runner is the run of a job: it records itself, unless the process is no more.
func (p *process) runner(takes []time.Duration) func(context.Context, schedule.Tick) error {
	return func(ctx context.Context, tick schedule.Tick) error {
		for left := p.stays(); left > 0; left = p.stays() {
			time.Sleep(left)
		}
		if p.dead.Load() || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.account.begins(p.name, tickID{tick.Job, tick.At.UnixMilli()})
		end := p.account.record.Begin(ticktest.Run{Job: tick.Job, At: tick.At, Token: tick.Token,
			Replica: p.name})
		timer := time.NewTimer(takes[p.which(tick.At, len(takes))])
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if !p.dead.Load() {
			end()
		}
		return context.Cause(ctx)
	}
}

// which chooses one of n for a tick, the same on every replica. A plain remainder would not do:
// ticks are a minute apart, and so always leave the same.
func (p *plan) which(at time.Time, n int) int {
	return rand.New(rand.NewPCG(p.seed, uint64(at.UnixMilli()))).IntN(n)
}

// ail says that something is wrong with the process for d; 0: for good.
func (p *process) ail(what string, d time.Duration) {
	s := span{from: time.Now(), what: what}
	if d > 0 {
		s.to = s.from.Add(d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ails = append(p.ails, s)
}

// ailed is what was wrong with the process at some moment of a time; "" if nothing.
func (p *process) ailed(from, to time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.ails {
		if s.from.Before(to) && (s.to.IsZero() || s.to.After(from)) {
			return s.what
		}
	}
	return ""
}

// die is a crash: from now on nothing goes out or comes in. What is left of it is taken down.
func (p *process) die(what string) {
	if p.dead.Swap(true) {
		return
	}
	p.ail(what, 0)
	for _, way := range p.ways {
		way.Faults().Partition(true)
	}
	p.dying.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.end(ctx)
	})
}

// end takes the process down.
func (p *process) end(ctx context.Context) {
	_ = p.sched.Shutdown(ctx)
	p.spin.end()
	_ = p.client.Close()
}

// cut parts the process from all nodes for d.
func (p *process) cut(what string, d time.Duration) {
	p.ail(what, d+time.Second)
	for _, way := range p.ways {
		way.Faults().Partition(true)
	}
	p.dying.Go(func() {
		time.Sleep(d)
		if p.dead.Load() {
			return
		}
		for _, way := range p.ways {
			way.Faults().Partition(false)
		}
	})
}

// freeze stops the process for d: what it would say and hear in that time, it says and hears then.
func (p *process) freeze(d time.Duration) {
	p.ail("frozen", d+time.Second)
	p.thaw.Store(time.Now().Add(d).UnixNano())
}

// redeploy ends the process properly. Runs may take a minute longer.
func (p *process) redeploy() {
	p.ail("shut down", 0)
	p.dying.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p.end(ctx)
	})
}

var _ quorum.Node = (*way)(nil)
