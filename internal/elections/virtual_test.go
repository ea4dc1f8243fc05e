package main

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// TestElectionsInVirtualTime is the command without the machine: nothing takes time but the
// messages, so the time to the winner is that of the protocol alone, however busy the machine is.
func TestElectionsInVirtualTime(t *testing.T) {
	t.Parallel()
	elections := 100
	if testing.Short() {
		elections = 10
	}
	for _, contenders := range []int{2, 3, 5, 10, 20} {
		t.Run(fmt.Sprintf("contenders=%d", contenders), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				replicas := virtualReplicas(t, contenders)
				ours := libraries()[0]
				var got tally
				for n := range elections {
					elect(t.Context(), ours, replicas, fmt.Sprint("election ", n), &got)
					time.Sleep(20 * time.Millisecond)
				}
				t.Logf("p50 %v, p99 %v, longest %v; %s; losers told of the holder %d, of split votes %d",
					got.quantile(0.5), got.quantile(0.99), got.quantile(1), splitsOf(replicas),
					got.held, got.unsettled)
				if got.none != 0 || got.several != 0 {
					t.Errorf("%d elections without a winner, %d with several: %v",
						got.none, got.several, got.errs)
				}
				if slow := got.quantile(0.9); slow > 20*time.Millisecond {
					t.Errorf("nine of ten winners took up to %v, want at most 20ms: do those who"+
						" yield come back too soon?", slow)
				}
				if got.unsettled > got.held/50 {
					t.Errorf("%d losers were told of split votes, %d of the holder; want nearly all"+
						" told of the holder", got.unsettled, got.held)
				}
			})
		})
	}
}

// virtualReplicas are contenders on five nodes in memory, each with delays of its own.
func virtualReplicas(t *testing.T, count int) []*replica {
	var nodes []*fakenode.Node
	for i := range 5 {
		nodes = append(nodes, fakenode.New(fmt.Sprintf("node%d:6379", i)))
	}
	var replicas []*replica
	for i := range count {
		var links []quorum.Node
		for k, n := range nodes {
			link := n.Link()
			seed := uint64(10*i + k)
			link.Faults().DelayRequests(fakenode.Jitter(seed, 0, 2*time.Millisecond))
			link.Faults().DelayReplies(fakenode.Jitter(seed+1e6, 0, 2*time.Millisecond))
			links = append(links, link)
		}
		cfg := redlock.Config{TTL: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		c, err := door.NewClient(cfg, links, clock.System{})
		if err != nil {
			t.Fatal(err)
		}
		r := &replica{lock: c.(*redlock.Client)}
		t.Cleanup(func() {
			if err := r.close(); err != nil {
				t.Error(err)
			}
		})
		// The nodes' memory is new: the first one waits for it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = r.lock.Do(ctx, "rehearsal", func(context.Context, *redlock.Lock) error { return nil })
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, r)
	}
	return replicas
}
