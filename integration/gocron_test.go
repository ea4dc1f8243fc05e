package integration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// gocron, with a Locker over nodes that stand still.

// stopTime is what gocron gives its jobs at a Shutdown.
const stopTime = 3 * time.Second

// A countedLocker knows how many calls are inside Lock.
type countedLocker struct {
	gocron.Locker
	inside atomic.Int32
}

func (l *countedLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	l.inside.Add(1)
	defer l.inside.Add(-1)
	return l.Locker.Lock(ctx, job)
}

// gocron is a started scheduler with so many jobs that are due each second.
func (r *rig) gocron(
	c *redlock.Client, jobs int, task func(context.Context),
) (gocron.Scheduler, *countedLocker) {
	r.Helper()
	locker, err := schedule.NewLocker(c)
	r.must(err)
	counted := &countedLocker{Locker: locker}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(counted),
		gocron.WithStopTimeout(stopTime), gocron.WithLocation(time.UTC))
	r.must(err)
	r.must(locker.Bind(s))
	for i := range jobs {
		_, err := s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(task),
			gocron.WithName(fmt.Sprint("job ", i)))
		r.must(err)
	}
	s.Start()
	return s, counted
}

// shutsDown wants the end within gocron's stop time.
func (r *rig) shutsDown(s gocron.Scheduler) error {
	r.Helper()
	began := time.Now()
	err := s.Shutdown()
	took := time.Since(began)
	r.Logf("Shutdown took %v: %v", took.Round(time.Millisecond), err)
	if took > stopTime+2*time.Second {
		r.Errorf("Shutdown took %v, want at most gocron's stop time, %v", took, stopTime)
	}
	return err
}

// go-co-op/gocron 835, 837, 818: Shutdown hung, or goroutines stayed, when jobs did not end in time.
func TestShutdownWithJobsInsideLockOverFrozenNodes(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	started := r.goroutines()
	c := r.admitted(redlock.Config{})
	const jobs = 20
	var runs atomic.Int32
	s, locker := r.gocron(c, jobs, func(context.Context) { runs.Add(1) })
	r.within(20*time.Second, "jobs run", func() bool { return runs.Load() >= jobs })
	each(r, 3, r.Nodes, (*Node).Pause)
	r.within(20*time.Second, "all jobs are inside Lock",
		func() bool { return locker.inside.Load() >= jobs })
	r.must(r.shutsDown(s))
	if n := locker.inside.Load(); n > 0 {
		t.Errorf("%d calls are still inside Lock", n)
	}
	r.must(ignore(c.Close(), redlock.ErrNoQuorum))
	started.fallTo(1) // the test's own
}

// The same with a task that heeds no context: its lock is renewed until the client is closed, and
// ends by its TTL then.
func TestShutdownWithATaskThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	started := r.goroutines()
	other := r.admitted(redlock.Config{})
	c := r.open(redlock.Config{})
	begun, release := make(chan struct{}, 1), make(chan struct{})
	s, _ := r.gocron(c, 1, func(context.Context) {
		begun <- struct{}{}
		<-release
	})
	<-begun
	each(r, 3, r.Nodes, (*Node).Pause)
	if err := r.shutsDown(s); !errors.Is(err, gocron.ErrStopJobsTimedOut) {
		t.Errorf("Shutdown: %v, want ErrStopJobsTimedOut", err)
	}
	began := time.Now()
	r.must(ignore(c.Close(), redlock.ErrNoQuorum))
	if took := time.Since(began); took > 4*ttl/4+time.Second {
		t.Errorf("Close took %v, want at most 4 x NodeTimeout", took)
	}
	each(r, 3, r.Nodes, (*Node).Unpause)
	ran := make(chan struct{}, 100)
	second, _ := r.gocron(other, 1, func(context.Context) { ran <- struct{}{} })
	select {
	case <-ran:
	case <-time.After(4 * ttl):
		t.Errorf("no other replica runs the job within %v of the first's end", 4*ttl)
	}
	close(release)
	r.must(second.Shutdown(), other.Close())
	started.fallTo(1) // the test's own
}
