package redlock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// refusals wants Nodes to show this reason for these nodes, counted from 0, and none for others.
func (r *rig) refusals(p *process, reason string, nodes ...int) {
	r.Helper()
	for i, n := range p.Nodes(r.Context()) {
		want := false
		for _, j := range nodes {
			want = want || i == j
		}
		if got := n.Err != nil && strings.Contains(n.Err.Error(), reason); got != want {
			r.Errorf("node %d: %v; want %q: %v", i+1, n.Err, reason, want)
		}
	}
}

func TestIndependenceOneServerBehindTwoAddresses(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		a := r.process(redlock.Config{})
		a.addrs[1].lead(r.nodes[0])
		l := r.take(&a.user, "k") // one of the addresses, whichever was met first, and node 3
		refused := 0
		for _, n := range a.Nodes(r.Context()) {
			if n.Err != nil && strings.Contains(n.Err.Error(), "same server as node node") {
				refused++
			}
		}
		if refused != 1 {
			r.Errorf("%d addresses are refused, want one", refused)
		}
		r.wantIs(l.Unlock(r.Context()))
		r.nodes[2].Faults().Down(true)
		round := r.wantNoVote(r.try(&a.user, "k"))
		if round.Votes > 1 {
			r.Errorf("%d votes of one server", round.Votes)
		}
	})
}

func TestIndependenceReplicas(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		r.old()
		r.nodes[0].Demote(fakenode.New("elsewhere:6379"))
		r.nodes[1].Demote(r.nodes[2])
		r.nodes[1].SetNature(fakenode.Nature{Primary: "node2:6379"})
		a := r.process(redlock.Config{})
		l := r.take(&a.user, "k")
		r.refusals(a, "it is a replica", 0, 1)
		r.refusals(a, "of another node, node2:6379", 1)
		r.wantIs(l.Unlock(r.Context()))
		r.nodes[2].Faults().Down(true)
		r.wantNoVote(r.try(&a.user, "k"))
	})
}

func TestIndependenceClusterMode(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		r.nodes[1].SetNature(fakenode.Nature{Cluster: true})
		a := r.process(redlock.Config{})
		r.take(&a.user, "k")
		r.wantKeys("k", 2)
		r.refusals(a, "Redis Cluster", 1)
	})
}

func TestIndependenceEvictionIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		r.nodes[1].SetNature(fakenode.Nature{Evicts: "allkeys-lru"})
		a := r.process(redlock.Config{})
		for range 3 {
			r.warm(&a.user)
			for i, n := range a.Nodes(r.Context()) {
				if n.Err != nil || len(n.Warnings) != i%2 {
					r.Errorf("node %d: %v, warnings %q; want %d", i+1, n.Err, n.Warnings, i%2)
				}
			}
		}
		if n := strings.Count(a.log.String(), "may evict locks"); n != 1 {
			r.Errorf("warned %d times, want once:\n%s", n, a.log)
		}
	})
}

// After an outage an address may lead somewhere else.
func TestIndependenceIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		a := r.process(redlock.Config{})
		r.warm(&a.user)
		r.nodes[1].Faults().Down(true)
		r.wantIs(r.take(&a.user, "k").Unlock(r.Context()))
		time.Sleep(time.Second)
		r.nodes[1].SetNature(fakenode.Nature{Cluster: true})
		r.nodes[1].Faults().Down(false)
		time.Sleep(time.Second)
		before := r.nodes[1].Count("acquire")
		r.wantIs(r.take(&a.user, "k").Unlock(r.Context()))
		synctest.Wait()
		if got := r.nodes[1].Count("acquire") - before; got != 0 {
			r.Errorf("a member of a cluster was asked for a vote %d times", got)
		}
		r.nodes[1].SetNature(fakenode.Nature{})
		r.refusals(a, "Redis Cluster")
	})
}
