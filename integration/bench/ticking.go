package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// A tickCell is one place to measure ticks in: so many replicas have the same jobs, all due at the
// same instant.
type tickCell struct{ replicas, jobs int }

// A tickSample is what one instant came to.
type tickSample struct {
	took     time.Duration // from the instant to the start of the last run
	p50      time.Duration // of all runs
	commands float64       // per tick, at all nodes together
	winner   float64       // of them, those of the replica that ran the only job
	loser    float64       // and of each of the others, on the average
	least    int           // of the replicas' runs: fairness
	most     int
	missing  int // jobs that did not run
	repeated int // runs beyond the first of a job
}

// A tickResult is all rounds of one cell.
type tickResult struct {
	cell    tickCell
	samples []tickSample
}

// measureTicks measures all cells, in rounds.
func measureTicks(
	ctx context.Context, s *stage, f *form, say progress,
) (all []tickResult, err error) {
	for _, cell := range f.ticks {
		all = append(all, tickResult{cell: cell})
	}
	for round := range f.tickRounds {
		for i, cell := range f.ticks {
			sample, err := cell.measure(ctx, s, round)
			if err != nil {
				return nil, fmt.Errorf("%d replicas, %d jobs: %w", cell.replicas, cell.jobs, err)
			}
			all[i].samples = append(all[i].samples, sample)
			say("ticks, round %d of %d: %d replicas, %d jobs", round+1, f.tickRounds, cell.replicas,
				cell.jobs)
		}
	}
	return all, nil
}

// tickGrace is how long after the instant a run is waited for.
const tickGrace = 30 * time.Second

// measure starts the replicas, each with a client and connections of its own, lets them wait for
// one instant, and takes note of what they run.
func (c tickCell) measure(ctx context.Context, s *stage, round int) (r tickSample, err error) {
	nodes := s.healthy[:usualNodes]
	runs := newRunTally(c.replicas, c.jobs)
	var replicas []*tickReplica
	defer func() {
		for _, one := range replicas {
			err = errors.Join(err, one.close())
		}
	}()
	for i := range c.replicas {
		one, err := newTickReplica(nodes.Addrs(), c.jobs == 1,
			func(e schedule.TickEvent) { runs.add(i, e) })
		if err != nil {
			return r, err
		}
		replicas = append(replicas, one)
	}
	at, err := c.prepare(replicas, round)
	if err != nil {
		return r, err
	}
	pause(ctx, time.Until(at.Add(-200*time.Millisecond)))
	if err := forgetCommands(ctx, nodes); err != nil {
		return r, err
	}
	for _, one := range replicas {
		one.asked.commands.Store(0)
	}
	waiting, cancel := context.WithDeadline(ctx, at.Add(tickGrace))
	defer cancel()
	select {
	case <-runs.complete:
	case <-waiting.Done():
	}
	pause(ctx, 10*settle) // what the others still ask
	counted, err := countCommands(ctx, nodes)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return r, err
	}
	r = runs.sample()
	r.commands = float64(counted.sent(nil)) / float64(c.jobs)
	if c.jobs == 1 {
		r.winner, r.loser = runs.shares(replicas)
	}
	return r, nil
}

// prepare adds the jobs to all replicas and starts them, in time for the instant that it returns.
// How long that takes is known only afterwards: if it was too long, it is an error.
func (c tickCell) prepare(replicas []*tickReplica, round int) (at time.Time, err error) {
	lead := 3*time.Second + time.Duration(c.replicas*c.jobs)*time.Millisecond
	at = time.Now().UTC().Add(lead).Truncate(time.Second).Add(time.Second)
	when := gocron.CronJob(fmt.Sprintf("%d %d %d * * *", at.Second(), at.Minute(), at.Hour()), true)
	errs := make([]error, len(replicas))
	var wg sync.WaitGroup
	for i, one := range replicas {
		wg.Go(func() {
			for job := range c.jobs {
				name := fmt.Sprintf("tick/%d/%d/%d/%d", c.replicas, c.jobs, round, job)
				_, err := one.scheduler.Add(name, when,
					func(context.Context, schedule.Tick) error { return nil },
					schedule.WithOverlap(schedule.OverlapAllow), schedule.WithGrace(tickGrace))
				if err != nil {
					errs[i] = err
					return
				}
			}
			one.scheduler.Start()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return at, err
	}
	if left := time.Until(at); left < 500*time.Millisecond {
		return at, fmt.Errorf("the schedulers were ready %v before the instant, too late: is the"+
			" machine busy with something else?", left)
	}
	return at, nil
}

// A tickReplica is what one process of a service has.
type tickReplica struct {
	asked     asked
	own       []*redis.Client // counted ones; none: redlock dials for itself
	client    *redlock.Client
	scheduler *schedule.Scheduler
}

// newTickReplica makes a replica. If its commands are to be counted, it has clients of its own.
func newTickReplica(
	addrs []string, counted bool, started func(schedule.TickEvent),
) (r *tickReplica, err error) {
	r = &tickReplica{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	cfg := redlock.Config{Logger: slog.New(slog.DiscardHandler)}
	if counted {
		r.own = dialAll(addrs, nil)
		for _, c := range r.own {
			c.AddHook(&r.asked)
		}
		cfg.Clients = r.own
	} else {
		cfg.Addrs = addrs
	}
	if r.client, err = redlock.New(cfg); err != nil {
		return r, err
	}
	r.scheduler, err = schedule.New(r.client, schedule.WithLocation(time.UTC),
		schedule.WithObserver(&schedule.Observer{Started: started}))
	return r, err
}

func (r *tickReplica) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	if r.scheduler != nil {
		errs = append(errs, r.scheduler.Shutdown(ctx))
	}
	if r.client != nil {
		errs = append(errs, r.client.Close())
	}
	return errors.Join(append(errs, closeAll(r.own))...)
}

// asked counts the commands that clients send: it is a hook of theirs.
type asked struct{ commands atomic.Int64 }

// DialHook counts nothing.
func (a *asked) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts a command.
func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a.commands.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts those of a pipeline.
func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		a.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// A runTally has the runs of one instant.
type runTally struct {
	complete chan struct{} // closed when all jobs have run

	mu   sync.Mutex // guards what follows
	jobs int
	ran  map[string]int // by job
	wins []int          // by replica
	late []time.Duration
}

func newRunTally(replicas, jobs int) *runTally {
	return &runTally{complete: make(chan struct{}), jobs: jobs, ran: map[string]int{},
		wins: make([]int, replicas)}
}

// add notes that a replica began to run a tick.
func (t *runTally) add(replica int, e schedule.TickEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wins[replica]++
	t.late = append(t.late, e.Late)
	t.ran[e.Tick.Job]++
	if t.ran[e.Tick.Job] == 1 && len(t.ran) == t.jobs {
		close(t.complete)
	}
}

// shares are the commands of the replica that won the only job, and of each of the others on the
// average.
func (t *runTally) shares(replicas []*tickReplica) (winner, loser float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, one := range replicas {
		n := float64(one.asked.commands.Load())
		if t.wins[i] > 0 {
			winner += n
		} else {
			loser += n / float64(len(replicas)-1)
		}
	}
	return winner, loser
}

func (t *runTally) sample() tickSample {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := tickSample{p50: median(t.late), missing: t.jobs - len(t.ran),
		least: slices.Min(t.wins), most: slices.Max(t.wins)}
	if len(t.late) > 0 {
		s.took = slices.Max(t.late)
	}
	s.repeated = len(t.late) - len(t.ran)
	return s
}
