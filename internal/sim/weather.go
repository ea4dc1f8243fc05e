package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// A weather changes what the ways and machines do to messages.
type weather struct {
	*world
	rand  *rand.Rand
	saved []*fakenode.Snapshot // by node, of an earlier moment
	twins []*fakenode.Node     // by node, its replica
	step  time.Duration        // the last step of a node's clock
}

func newWeather(w *world) *weather {
	v := &weather{world: w, rand: w.Plan.rand(weatherStream),
		saved: make([]*fakenode.Snapshot, len(w.nodes))}
	for _, n := range w.nodes {
		v.fair(n.Faults())
	}
	return v
}

// fair is what every schedule begins with: messages take their time, and no two the same.
func (v *weather) fair(f *fakenode.Faults) {
	if v.Way > 0 {
		f.DelayRequests(fakenode.Jitter(v.rand.Uint64(), 0, v.Way))
		f.DelayReplies(fakenode.Jitter(v.rand.Uint64(), 0, v.Way))
	}
}

func (v *weather) run() {
	for range v.Storms {
		select {
		case <-time.After(upTo(v.rand, v.TTL)):
		case <-v.over:
			return
		}
		i := v.rand.IntN(len(v.nodes))
		what := v.machine(i)
		if v.rand.IntN(3) > 0 {
			what = v.way(i)
		}
		v.counts.Storms.Add(1)
		v.event("weather", what, nil)
	}
}

// machine does something to a node or to a client's clock.
func (v *weather) machine(i int) string {
	n := v.nodes[i]
	if v.Amnesia && v.rand.IntN(2) == 0 {
		return v.amnesia(i)
	}
	switch v.rand.IntN(8) {
	case 0:
		v.counts.Forgets.Add(1)
		n.Forget()
		return n.Name() + " forgets"
	case 1:
		n.Restart()
		return n.Name() + " restarts"
	case 2:
		v.saved[i] = n.Snapshot()
		return n.Name() + " keeps a snapshot"
	case 3:
		if v.saved[i] == nil || !v.Wild {
			return n.Name() + " has no snapshot"
		}
		v.counts.Forgets.Add(1)
		n.RestartFromSnapshot(v.saved[i])
		return n.Name() + " restarts from its snapshot"
	case 4:
		n.Resume()
		return n.Name() + " goes on"
	case 5:
		c := v.clients[v.rand.IntN(len(v.clients))]
		step := upTo(v.rand, 2*v.TTL) - v.TTL
		c.clock.offset.Add(int64(step))
		return fmt.Sprintf("%s's wall clock steps by %v", c.name, step)
	default:
		v.counts.Freezes.Add(1)
		n.Pause()
		return n.Name() + " freezes"
	}
}

// way does something to a node's way, or to one client's way to it.
func (v *weather) way(i int) string {
	f, where := v.nodes[i].Faults(), v.nodes[i].Name()
	if v.rand.IntN(2) == 0 {
		c := v.clients[v.rand.IntN(len(v.clients))]
		f, where = c.links[i].Faults(), c.name+"-"+where
	}
	seed := v.rand.Uint64()
	chance := pick(v.rand, 0.05, 0.2, 0.5)
	kind := v.rand.IntN(11)
	if kind == 3 && !v.Wild {
		kind = 0
	}
	switch kind {
	case 0:
		f.LoseRequests(fakenode.Chance(seed, chance))
		return where + " loses requests"
	case 1:
		f.LoseReplies(fakenode.Chance(seed, chance))
		return where + " loses replies"
	case 2:
		f.LosePublished(fakenode.Chance(seed, chance))
		return where + " loses publications"
	case 3:
		f.Repeat(fakenode.Repeats(seed, chance, 0, v.late()))
		return where + " repeats"
	case 4:
		f.DelayRequests(fakenode.Jitter(seed, 0, v.late()))
		return where + " delays requests"
	case 5:
		f.DelayReplies(fakenode.Jitter(seed, 0, v.late()))
		return where + " delays replies"
	case 6:
		breaks := fakenode.Chance(seed, chance)
		f.BreakReplies(func(calls int) int {
			if breaks() {
				return calls / 2
			}
			return calls
		})
		return where + " breaks replies off"
	case 7:
		v.counts.Cuts.Add(1)
		f.Down(true)
		return where + " is down"
	case 8:
		v.counts.Cuts.Add(1)
		f.Partition(true)
		return where + " is cut off"
	case 9:
		f.IgnoreDeadlines(v.late())
		return where + " ignores deadlines"
	default:
		f.Clear()
		v.fair(f)
		return where + " is fair again"
	}
}

// late is how long a message may take: more than anybody waits, in wild weather longer than its
// lock lives.
func (v *weather) late() time.Duration {
	if v.Wild {
		return 2 * v.TTL
	}
	return v.NodeTimeout
}

// calm ends all faults.
func (w *world) calm() {
	for _, n := range w.nodes {
		n.Faults().Clear()
		n.Resume()
	}
	for _, c := range w.clients {
		for _, link := range c.links {
			link.Faults().Clear()
		}
	}
}
