package ticksim

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// A world is the nodes and replicas of one night.
type world struct {
	*plan
	account *account
	counts  *counts
	nodes   []*fakenode.Node
	slots   []*slot
	over    chan struct{}  // closed when nothing fails any more
	dying   sync.WaitGroup // processes that are taken down
	from    time.Time      // ticks after it have to run
}

const (
	warmUp   = time.Minute     // until the nodes vote, and every replica knows the time
	coolDown = 3 * time.Minute // without faults, at the end
)

// build makes the nodes.
func (w *world) build() {
	r := w.rand(planStream + 100)
	for i := range w.plan.nodes {
		n := fakenode.New(fmt.Sprintf("node-%d:6379", i))
		n.StepClock(between(r, -5*time.Millisecond, 5*time.Millisecond))
		n.Faults().DelayRequests(fakenode.Jitter(r.Uint64(), 0, w.way))
		n.Faults().DelayReplies(fakenode.Jitter(r.Uint64(), 0, w.way))
		n.OnExecuted(func(e fakenode.Executed) { w.account.executed(i, e) })
		w.nodes = append(w.nodes, n)
	}
}

// run lives through a night in the caller's bubble, and returns what was wrong.
func (p *plan) run(counts *counts) []string {
	w := &world{plan: p, counts: counts, over: make(chan struct{})}
	w.account = newAccount(w)
	time.Sleep(time.Until(p.noon.Add(-warmUp - 17*time.Second)))
	w.build()
	for i := range replicas {
		w.slots = append(w.slots, newSlot(w, i))
	}
	time.Sleep(time.Until(p.noon))
	w.from = time.Now()
	var trouble sync.WaitGroup
	if !p.calm {
		for _, s := range w.slots {
			trouble.Go(s.live)
		}
		trouble.Go(newWeather(w).run)
	}
	time.Sleep(p.length - coolDown)
	close(w.over)
	trouble.Wait()
	time.Sleep(time.Until(p.noon.Add(p.length + 40*time.Second)))
	for _, s := range w.slots {
		s.now.redeploy()
	}
	w.dying.Wait()
	return w.account.close(p.noon.Add(p.length))
}
