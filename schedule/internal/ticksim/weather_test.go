package ticksim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// weather makes nodes fail, a minority at a time.
type weather struct {
	*world
	mu   sync.Mutex // guards rand
	rand *rand.Rand
}

// votesAgain waits until a node that was started anew gives votes again. It begins to wait when it is
// first met, which may be at the next tick only, if nobody had noticed that it was gone.
func (v *weather) votesAgain(n *fakenode.Node) {
	for {
		node := n.Hash("ql:node")
		from, err := strconv.ParseInt(node["from"], 10, 64)
		if err == nil && node["id"] == n.Identity() && n.Now().UnixMicro() >= from {
			break
		}
		select {
		case <-time.After(time.Second):
		case <-v.over:
			return
		}
	}
	time.Sleep(time.Second)
}

func newWeather(w *world) *weather {
	return &weather{world: w, rand: w.plan.rand(weatherStream)}
}

func (v *weather) run() {
	for {
		select {
		case <-time.After(between(v.rand, 2*time.Minute, 20*time.Minute)):
		case <-v.over:
			return
		}
		first := v.rand.IntN(len(v.nodes))
		many := 1
		if len(v.nodes) > 3 && v.rand.IntN(2) == 0 {
			many = 2
		}
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() { v.fail((first + i) % len(v.nodes)) })
		}
		all.Wait()
	}
}

// fail makes one node fail, and waits until it votes again.
func (v *weather) fail(i int) {
	v.mu.Lock()
	kind := v.rand.IntN(4)
	down := between(v.rand, time.Second, 3*time.Minute)
	v.mu.Unlock()
	n := v.nodes[i]
	v.counts.nodesFailed.Add(1)
	done := v.account.nodeFails(i)
	switch kind {
	case 0: // cut off, with its memory
		n.Faults().Partition(true)
		time.Sleep(down)
		n.Faults().Partition(false)
		time.Sleep(time.Second)
	case 1: // frozen: what is sent to it is done when it goes on
		n.Pause()
		time.Sleep(down)
		n.Resume()
		time.Sleep(time.Second)
	case 2: // restarts with its data
		n.Faults().Down(true)
		time.Sleep(down)
		n.Restart()
		n.Faults().Down(false)
		v.votesAgain(n)
	case 3:
		v.counts.nodesForgot.Add(1)
		n.Faults().Down(true)
		time.Sleep(down)
		n.Forget()
		n.Faults().Down(false)
		v.votesAgain(n)
	}
	done()
}

// during reports whether one of the spans meets a time.
func during(all []span, from, to time.Time) bool {
	return slices.ContainsFunc(all, func(s span) bool {
		return s.from.Before(to) && (s.to.IsZero() || s.to.After(from))
	})
}
