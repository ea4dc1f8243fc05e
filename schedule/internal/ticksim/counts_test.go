package ticksim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// counts say what nights have seen. They may be added to concurrently.
type counts struct {
	nights, due, ran              atomic.Int64
	twice, missed                 atomic.Int64
	claims, claimsCut, commitsCut atomic.Int64
	commitsLost                   atomic.Int64
	crashes, freezes, redeploys   atomic.Int64
	nodesFailed, nodesForgot      atomic.Int64

	mu      sync.Mutex // guards reasons
	reasons map[string]int
}

func (c *counts) reason(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reasons == nil {
		c.reasons = make(map[string]int)
	}
	c.reasons[why]++
}

// lost is the part of the due ticks that did not run.
func (c *counts) lost() float64 { return float64(c.missed.Load()) / float64(max(c.due.Load(), 1)) }

// cut is the part of the claims that were cut between win and commit.
func (c *counts) cut() float64 {
	return float64(c.claimsCut.Load()) / float64(max(c.claims.Load(), 1))
}

func (c *counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nights=%d ticks due=%d runs=%d twice=%d missed=%d (%.3f %%)\n", c.nights.Load(),
		c.due.Load(), c.ran.Load(), c.twice.Load(), c.missed.Load(), 100*c.lost())
	fmt.Fprintf(&b, "claims=%d cut between win and commit=%d (%.1f %%), of these amid the commit=%d;"+
		" commits lost on a majority=%d\n", c.claims.Load(), c.claimsCut.Load(), 100*c.cut(),
		c.commitsCut.Load(), c.commitsLost.Load())
	fmt.Fprintf(&b, "replicas: crashes=%d freezes=%d redeploys=%d;"+
		" nodes: failed=%d restarted empty=%d\n", c.crashes.Load(), c.freezes.Load(), c.redeploys.Load(), c.nodesFailed.Load(),
		c.nodesForgot.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, why := range slices.Sorted(maps.Keys(c.reasons)) {
		fmt.Fprintf(&b, "%6d  %s\n", c.reasons[why], why)
	}
	return b.String()
}
