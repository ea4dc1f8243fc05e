package schedule

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// Many jobs are due at one instant, and all replicas claim them all at once: more than the nodes can
// answer within the NodeTimeout. Without turns every claim is answered too late and made again.
func TestACrowdOfTicksAllRun(t *testing.T) {
	for _, c := range []struct{ replicas, jobs int }{{3, 600}, {12, 200}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := threeNodes()
				runs := make([]atomic.Int64, c.jobs)
				for range c.replicas {
					crowded(t, nodes, c.jobs, func(job int) { runs[job].Add(1) })
				}
				time.Sleep(30 * time.Second) // past the first contact, and between two instants
				effort(nodes, 500*time.Microsecond)
				time.Sleep(time.Minute)
				effort(nodes, 0)
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
		nodes := threeNodes()
		const jobs = 3000
		var crowd, seconds atomic.Int64
		s := crowded(t, nodes, jobs, func(int) { crowd.Add(1) })
		_, err := s.Add("every second", gocron.CronJob("* * * * * *", true),
			func(context.Context, Tick) error { seconds.Add(1); return nil })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30*time.Second + 500*time.Millisecond)
		effort(nodes, 200*time.Microsecond)
		before := seconds.Load()
		time.Sleep(time.Minute)
		effort(nodes, 0)
		if n := seconds.Load() - before; n != 60 {
			t.Errorf("%d ticks in a minute, want 60", n)
		}
		if n := crowd.Load(); n != jobs {
			t.Errorf("%d of %d of the crowd ran", n, jobs)
		}
	})
}

func threeNodes() (nodes []*fakenode.Node) {
	for i := range 3 {
		nodes = append(nodes, fakenode.New(fmt.Sprintf("node%d:6379", i)))
	}
	return nodes
}

// effort makes each command keep each node busy for so long.
func effort(nodes []*fakenode.Node, d time.Duration) {
	for _, n := range nodes {
		n.Faults().Effort(d)
	}
}

// crowded is a replica with so many jobs that are due every minute.
func crowded(t *testing.T, nodes []*fakenode.Node, jobs int, run func(job int)) *Scheduler {
	t.Helper()
	client := clientOn(t, nodes...)
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
