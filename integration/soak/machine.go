package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// slowAnswer is how long a PING takes on a machine that is too slow for what is asked of it: half
// of what the replicas give a node.
const slowAnswer = nodeTimeout / 2

// A stall is a time in which the machine was too slow: a PING to a node, on no replica's way, was
// answered late. So much is known without the product.
type stall struct {
	node     int
	from, to time.Time
}

// watch asks each node again and again, until ctx ends, and notes stalls.
func (s *stage) watch(ctx context.Context) {
	var asking sync.WaitGroup
	for i, n := range s.cluster.Nodes {
		asking.Go(func() {
			c := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1, DialerRetries: 1,
				ReadTimeout: 10 * time.Second})
			defer c.Close()
			for at := time.Now(); sleepUntil(ctx, at) == nil; {
				// One that is dead gives an error: that is no stall.
				err := c.Ping(ctx).Err()
				now := time.Now()
				if err == nil && now.Sub(at) > slowAnswer {
					s.mu.Lock()
					s.stalls = append(s.stalls, stall{node: i, from: at, to: now})
					s.mu.Unlock()
				}
				at = now.Add(50 * time.Millisecond)
			}
		})
	}
	asking.Wait()
}

// ofMachine are the stalls of nodes that were not struck at the time: a frozen node answers late on
// any machine.
func ofMachine(stalls []stall, faults []fault) (own []stall) {
	for _, st := range stalls {
		isStruck := slices.ContainsFunc(faults, func(f fault) bool {
			return slices.Contains(f.nodes, st.node) && !f.from.After(st.to) && !f.to.Before(st.from)
		})
		if !isStruck {
			own = append(own, st)
		}
	}
	return own
}

// tooSlow: so many nodes gave this replica no vote that there was no majority; some were struck,
// and the machine was too slow for the others.
func tooSlow(at time.Time, r record, faults []fault, stalls []stall) (reason, bool) {
	why := map[int]bool{} // nodes whose silence is explained
	detail := fmt.Sprintf("%s had no vote of nodes %s", r.Replica, numbers(r.silent))
	for _, f := range faults {
		hit := f.struck(r.silent)
		if len(hit) == 0 || !f.mayCost(at) || !f.wasBefore(r.came) {
			continue
		}
		detail += "; " + f.String()
		for _, n := range hit {
			why[n] = true
		}
	}
	for _, n := range r.silent {
		for _, st := range stalls {
			if why[n] || st.node != n || st.from.After(at.Add(grace)) || st.to.Before(at) {
				continue
			}
			why[n] = true
			detail += fmt.Sprintf("; a PING to node %d took %v, from %s", n+1,
				st.to.Sub(st.from).Round(time.Millisecond), moment(st.from))
		}
	}
	return reason{kind: "the machine was too slow: no majority of the nodes in time",
		detail: detail}, (r.Why == undecided || r.Why == tooLate) && len(why) >= quorum
}
