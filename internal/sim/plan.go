package sim

import (
	"math/rand/v2"
	"time"
)

// A Plan is what a seed stands for.
type Plan struct {
	Seed    uint64
	Nodes   int
	Clients int
	Actors  int // per client
	Names   int
	Events  int // at least

	TTL         time.Duration // Config.TTL and MaxTTL
	NodeTimeout time.Duration

	Way    time.Duration // a message takes up to this long, in fair weather
	Storms int           // changes of the weather, besides the actors' events
	Wild   bool          // messages come much later than anybody waits for them, and come again
	Skew   bool          // clients' wall clocks are wrong, nodes' clocks drift
	Guard  bool          // the clients' restart guard is on; else the nodes guard themselves
	Load   bool          // clients act as under load: a majority of the nodes goes first

	// Amnesia: nodes lose their memory in more ways, and clocks are stepped; see amnesia.go. It
	// wants Guard. Blind: nobody guards, to see that two holders are found.
	Amnesia, Blind bool
}

// stream numbers of rand.PCG, so that the parts of a schedule do not depend on each other.
const (
	planStream = iota + 1
	weatherStream
	clockStream
	actorStream // and above
)

func (p *Plan) rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(p.Seed, stream)) }

// NewPlan makes the plan of a seed.
func NewPlan(seed uint64) *Plan {
	p := &Plan{Seed: seed}
	r := p.rand(planStream)
	p.Nodes = pick(r, 3, 3, 5, 5, 5, 4, 1)
	p.Clients = 3 + r.IntN(3)
	p.Actors = 1 + r.IntN(2)
	p.Names = pick(r, 1, 1, 2, 3)
	p.Events = 50 + r.IntN(30)
	p.TTL = pick[time.Duration](r, 60, 200, 300, 1000, 10_000, 10_000) * time.Millisecond
	p.NodeTimeout = min(250*time.Millisecond, p.TTL/time.Duration(4+r.IntN(4)))
	p.Way = pick[time.Duration](r, 0, 1, 1, 2, 10) * p.NodeTimeout / 20
	p.Storms = pick(r, 0, 5, 10, 20, 30)
	p.Wild = r.IntN(2) == 0
	p.Skew = r.IntN(2) == 0
	p.Guard = r.IntN(2) == 0
	p.Load = r.IntN(2) == 0
	return p
}

// pick chooses one of what it is given.
func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// upTo is a random span below d, odd in its nanoseconds, so that few things happen in one instant.
func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(max(int64(d), 2)))
}
