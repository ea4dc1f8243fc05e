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

// A tickResult is all rounds of one cell with one library.
type tickResult struct {
	cell    tickCell
	name    string
	samples []tickSample
}

// A tickPeer is a library that decides which replica of gocron runs a tick.
type tickPeer struct {
	name  string
	plain []string // as a peer's

	// make makes a replica with connections of its own. If its commands are to be counted for
	// itself, its clients of Redis count them.
	make func(addrs []string, counted bool) (*tickReplica, error)
}

// tickPeers are all that are compared, ours first.
func tickPeers() []tickPeer {
	return []tickPeer{
		{name: oursName, make: newOurReplica},
		{name: gocronName, plain: []string{"set"}, make: newGocronReplica},
	}
}

// measureTicks measures all cells, in rounds, all libraries one after the other in each.
func measureTicks(
	ctx context.Context, s *stage, f *form, say progress,
) (all []tickResult, err error) {
	ps := tickPeers()
	for _, cell := range f.ticks {
		for _, p := range ps {
			all = append(all, tickResult{cell: cell, name: p.name})
		}
	}
	for round := range f.tickRounds {
		for i := range all {
			r := &all[i]
			sample, err := r.cell.measure(ctx, s, &ps[i%len(ps)], round)
			if err != nil {
				return nil, fmt.Errorf("%s, %d replicas, %d jobs: %w", r.name, r.cell.replicas,
					r.cell.jobs, err)
			}
			r.samples = append(r.samples, sample)
			say("ticks, round %d of %d: %d replicas, %d jobs, %s", round+1, f.tickRounds,
				r.cell.replicas, r.cell.jobs, r.name)
		}
	}
	return all, nil
}

// How long after the instant a run is waited for, and how long each run takes. A run that took no
// time would free a lock that lives as long as the run before the other replicas ask for it.
const tickGrace, tickRun = 30 * time.Second, 100 * time.Millisecond

// measure starts the replicas, each with a client and connections of its own, lets them wait for
// one instant, and takes note of what they run.
func (c tickCell) measure(
	ctx context.Context, s *stage, p *tickPeer, round int,
) (r tickSample, err error) {
	nodes := s.healthy[:usualNodes]
	runs := newRunTally(c.replicas, c.jobs)
	var replicas []*tickReplica
	defer func() {
		for _, one := range replicas {
			err = errors.Join(err, one.close())
		}
	}()
	for range c.replicas {
		one, err := p.make(nodes.Addrs(), c.jobs == 1)
		if err != nil {
			return r, err
		}
		replicas = append(replicas, one)
	}
	at, err := c.prepare(replicas, runs, fmt.Sprintf("%s/tick/%d/%d/%d", p.name, c.replicas, c.jobs,
		round))
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
	pause(ctx, tickRun+10*settle) // what the others still ask, and what the runs free
	counted, err := countCommands(ctx, nodes)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return r, err
	}
	r = runs.sample()
	r.commands = float64(counted.sent(p.plain)) / float64(c.jobs)
	if c.jobs == 1 {
		r.winner, r.loser = runs.shares(replicas)
	}
	return r, nil
}

// prepare adds the jobs to all replicas and starts them, in time for the instant that it returns.
// How long that takes is known only afterwards: if it was too long, it is an error.
func (c tickCell) prepare(
	replicas []*tickReplica, runs *runTally, prefix string,
) (at time.Time, err error) {
	lead := 3*time.Second + time.Duration(c.replicas*c.jobs)*time.Millisecond
	at = time.Now().UTC().Add(lead).Truncate(time.Second).Add(time.Second)
	crontab := fmt.Sprintf("%d %d %d * * *", at.Second(), at.Minute(), at.Hour())
	errs := make([]error, len(replicas))
	var wg sync.WaitGroup
	for i, one := range replicas {
		wg.Go(func() {
			for job := range c.jobs {
				name := fmt.Sprintf("%s/%d", prefix, job)
				// gocron writes to a definition: one for each job.
				errs[i] = one.add(name, gocron.CronJob(crontab, true), func() {
					runs.add(i, name, time.Since(at))
					time.Sleep(tickRun)
				})
				if errs[i] != nil {
					return
				}
			}
			one.start()
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
	asked asked
	add   func(job string, when gocron.JobDefinition, run func()) error
	start func()
	stop  []func(context.Context) error // in this order
}

// newOurReplica makes a replica with a Scheduler of ours; without counting, redlock dials for
// itself.
func newOurReplica(addrs []string, counted bool) (r *tickReplica, err error) {
	r = &tickReplica{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	cfg := redlock.Config{Logger: slog.New(slog.DiscardHandler)}
	if counted {
		cfg.Clients = dialAll(addrs, nil)
		for _, c := range cfg.Clients {
			c.AddHook(&r.asked)
		}
		r.stopFirst(func(context.Context) error { return closeAll(cfg.Clients) })
	} else {
		cfg.Addrs = addrs
	}
	client, err := redlock.New(cfg)
	if err != nil {
		return r, err
	}
	r.stopFirst(func(context.Context) error { return client.Close() })
	scheduler, err := schedule.New(client, schedule.WithLocation(time.UTC))
	if err != nil {
		return r, err
	}
	r.stopFirst(scheduler.Shutdown)
	r.start = scheduler.Start
	r.add = func(job string, when gocron.JobDefinition, run func()) error {
		_, err := scheduler.Add(job, when,
			func(context.Context, schedule.Tick) error { run(); return nil },
			schedule.WithOverlap(schedule.OverlapAllow), schedule.WithGrace(tickGrace))
		return err
	}
	return r, nil
}

// newGocronReplica makes a replica with a scheduler of gocron's and gocron-redis-lock.
func newGocronReplica(addrs []string, counted bool) (r *tickReplica, err error) {
	r = &tickReplica{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	own := redis.NewClient(&redis.Options{Addr: addrs[0]})
	if counted {
		own.AddHook(&r.asked)
	}
	g, err := newViaGocron(own)
	if err != nil {
		return r, err
	}
	r.stopFirst(func(context.Context) error { return g.close() })
	scheduler, err := gocron.NewScheduler(gocron.WithLocation(time.UTC),
		gocron.WithDistributedLocker(g.locker))
	if err != nil {
		return r, err
	}
	r.stopFirst(func(context.Context) error { return scheduler.Shutdown() })
	r.start = scheduler.Start
	r.add = func(job string, when gocron.JobDefinition, run func()) error {
		_, err := scheduler.NewJob(when, gocron.NewTask(run), gocron.WithName(job))
		return err
	}
	return r, nil
}

// stopFirst stops something before all that is stopped already.
func (r *tickReplica) stopFirst(stop func(context.Context) error) {
	r.stop = slices.Insert(r.stop, 0, stop)
}

func (r *tickReplica) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, stop := range r.stop {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
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

// add notes that a replica began to run a job, so late.
func (t *runTally) add(replica int, job string, late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wins[replica]++
	t.late = append(t.late, late)
	t.ran[job]++
	if t.ran[job] == 1 && len(t.ran) == t.jobs {
		close(t.complete)
	}
}

// shares are the commands of a replica that ran the only job, and of each of the others, on the
// average: of more than one, if it was repeated.
func (t *runTally) shares(replicas []*tickReplica) (winner, loser float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	winners := 0
	for i, one := range replicas {
		n := float64(one.asked.commands.Load())
		if t.wins[i] > 0 {
			winners++
			winner += n
		} else {
			loser += n
		}
	}
	return winner / max(float64(winners), 1), loser / max(float64(len(replicas)-winners), 1)
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
