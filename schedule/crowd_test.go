package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// Many jobs are due at one instant, and all replicas claim them all at once: more than the nodes can
// answer within the NodeTimeout. Without turns every claim is answered too late and made again.
func TestACrowdOfTicksAllRun(t *testing.T) {
	const effort = 500 * time.Microsecond
	for _, c := range []struct{ replicas, jobs int }{{3, 600}, {12, 200}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := make([]*fakenode.Node, 3)
				for i := range nodes {
					nodes[i] = fakenode.New(fmt.Sprintf("node%d:6379", i))
				}
				runs := make([]atomic.Int64, c.jobs)
				for range c.replicas {
					crowded(t, nodes, c.jobs, func(job int) { runs[job].Add(1) })
				}
				time.Sleep(30 * time.Second) // past the first contact, and between two instants
				for _, n := range nodes {
					n.Faults().Effort(effort)
				}
				time.Sleep(time.Minute)
				for _, n := range nodes {
					n.Faults().Effort(0)
				}
				missed := 0
				for i := range runs {
					switch runs[i].Load() {
					case 1:
					case 0:
						missed++
					default:
						t.Errorf("job %d ran %d times", i, runs[i].Load())
					}
				}
				if missed > 0 {
					t.Errorf("%d of %d missed", missed, c.jobs)
				}
			})
		})
	}
}

// A tick every second has no time to wait until a crowd is through.
func TestATickEverySecondNeedNotWaitForACrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := make([]*fakenode.Node, 3)
		for i := range nodes {
			nodes[i] = fakenode.New(fmt.Sprintf("node%d:6379", i))
		}
		const jobs = 3000
		var crowd, seconds atomic.Int64
		s := crowded(t, nodes, jobs, func(int) { crowd.Add(1) })
		_, err := s.Add("every second", gocron.CronJob("* * * * * *", true),
			func(context.Context, Tick) error { seconds.Add(1); return nil })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		for _, n := range nodes {
			n.Faults().Effort(200 * time.Microsecond)
		}
		before := seconds.Load()
		time.Sleep(time.Minute)
		for _, n := range nodes {
			n.Faults().Effort(0)
		}
		if n := seconds.Load() - before; n != 60 {
			t.Errorf("%d ticks in a minute, want 60", n)
		}
		if n := crowd.Load(); n != jobs {
			t.Errorf("%d of %d of the crowd ran", n, jobs)
		}
	})
}

// crowded is a replica with so many jobs that are due every minute.
func crowded(t *testing.T, nodes []*fakenode.Node, jobs int, run func(job int)) *Scheduler {
	t.Helper()
	var links []quorum.Node
	for _, n := range nodes {
		links = append(links, n.Link())
	}
	made, err := door.NewClient(redlock.Config{Logger: slog.New(slog.DiscardHandler)}, links,
		clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	client := made.(*redlock.Client)
	s, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		_, err := s.Add(fmt.Sprint("job-", i), gocron.CronJob("* * * * *", false),
			func(context.Context, Tick) error { run(i); return nil }, WithOverlap(OverlapAllow))
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
