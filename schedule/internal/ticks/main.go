// Command ticks measures what a tick costs: the time from its instant to the start of its run, and
// the commands sent to the nodes, in all, by the replica that runs it and by one that does not.
// Three replicas, in this process, have the same jobs, every second.
//
//	go run ./schedule/internal/ticks [-for 30s] [-jobs 1] [-replicas 3] [-nodes 5]
//
// Commands are calls of scripts; what one replica sends together to a node is one message.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fleet"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// settings are what the flags say.
type settings struct {
	span                  time.Duration
	jobs, replicas, nodes int
}

func main() {
	var s settings
	flag.DurationVar(&s.span, "for", 30*time.Second, "how long ticks are counted")
	flag.IntVar(&s.jobs, "jobs", 1, "jobs that are due at the same instant")
	flag.IntVar(&s.replicas, "replicas", 3, "replicas")
	flag.IntVar(&s.nodes, "nodes", 5, "nodes")
	flag.Parse()
	if err := run(context.Background(), s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ticks:", err)
		os.Exit(1)
	}
}

// A counted node counts what goes to it.
type counted struct {
	quorum.Node
	calls, messages *atomic.Int64
}

// Exec is for quorum.Node.
func (c counted) Exec(ctx context.Context, batch *quorum.Batch) error {
	c.messages.Add(1)
	c.calls.Add(int64(len(batch.Calls)))
	return c.Node.Exec(ctx, batch)
}

// A replica is a client and a scheduler, and what they have sent.
type replica struct {
	client          *redlock.Client
	scheduler       *schedule.Scheduler
	calls, messages atomic.Int64
	before          [2]int64
	won             atomic.Int64 // since the last look
}

// A measurement is what has come of the ticks.
type measurement struct {
	mu   sync.Mutex // guards late
	late []time.Duration

	calls, messages, ticks  int64 // in all
	winner, loser           int64 // calls in seconds that one replica won whole
	winnerTicks, loserTicks int64
}

func run(ctx context.Context, s settings, out io.Writer) (err error) {
	nodes, err := fleet.Start(ctx, s.nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	m := &measurement{}
	var all []*replica
	defer func() {
		for _, r := range all {
			_ = r.scheduler.Shutdown(ctx)
			_ = r.client.Close()
		}
	}()
	for i := range s.replicas {
		r, err := m.start(ctx, nodes.Addrs(), fmt.Sprint("replica-", i+1), s.jobs)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	// Looks are half-way between two ticks.
	at := time.Now().Truncate(time.Second).Add(2*time.Second + time.Second/2)
	time.Sleep(time.Until(at))
	m.reset(all)
	for end := at.Add(s.span); at.Before(end); {
		at = at.Add(time.Second)
		time.Sleep(time.Until(at))
		m.look(all)
	}
	fmt.Fprintf(out, "%v on loopback, %d replicas, %d jobs every second, %v\n\n",
		nodes, s.replicas, s.jobs, s.span)
	m.report(out)
	return nil
}

// start starts a replica that records its runs.
func (m *measurement) start(
	ctx context.Context, addrs []string, name string, jobs int,
) (*replica, error) {
	r := &replica{}
	var nodes []quorum.Node
	for _, addr := range addrs {
		node, err := quorum.Dial(addr, redlock.DefaultNodeTimeout)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, counted{node, &r.calls, &r.messages})
	}
	log := slog.New(slog.DiscardHandler)
	client, err := door.NewClient(redlock.Config{Identity: name, Logger: log}, nodes, clock.System{})
	if err != nil {
		return nil, err
	}
	r.client = client.(*redlock.Client)
	if err := r.client.Admit(ctx); err != nil {
		return nil, err
	}
	r.scheduler, err = schedule.New(r.client, schedule.WithObserver(&schedule.Observer{
		Started: func(e schedule.TickEvent) {
			r.won.Add(1)
			m.mu.Lock()
			m.late = append(m.late, e.Late)
			m.mu.Unlock()
		}}))
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		_, err := r.scheduler.Add(fmt.Sprint("job-", i+1), gocron.CronJob("* * * * * *", true),
			func(context.Context, schedule.Tick) error { return nil })
		if err != nil {
			return nil, err
		}
	}
	r.scheduler.Start()
	return r, nil
}

// reset forgets what was before.
func (m *measurement) reset(all []*replica) {
	m.look(all)
	m.mu.Lock()
	m.late = nil
	m.mu.Unlock()
	m.calls, m.messages, m.ticks = 0, 0, 0
	m.winner, m.loser, m.winnerTicks, m.loserTicks = 0, 0, 0, 0
}

// look takes in what one instant has cost.
func (m *measurement) look(all []*replica) {
	var won [2]int64 // the ticks; replicas that had some
	for _, r := range all {
		if n := r.won.Load(); n > 0 {
			won[0], won[1] = won[0]+n, won[1]+1
		}
	}
	m.ticks += won[0]
	for _, r := range all {
		calls, messages := r.calls.Load(), r.messages.Load()
		sent := calls - r.before[0]
		m.calls, m.messages = m.calls+sent, m.messages+messages-r.before[1]
		r.before = [2]int64{calls, messages}
		switch n := r.won.Swap(0); {
		case won[1] != 1: // shared: nobody knows whose commands they are
		case n > 0:
			m.winner, m.winnerTicks = m.winner+sent, m.winnerTicks+n
		default:
			m.loser, m.loserTicks = m.loser+sent, m.loserTicks+won[0]
		}
	}
}

func (m *measurement) report(out io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.late)
	if len(m.late) == 0 {
		fmt.Fprintln(out, "no tick ran")
		return
	}
	part := func(p int) time.Duration { return m.late[min(len(m.late)*p/100, len(m.late)-1)] }
	per := func(n, ticks int64) float64 { return float64(n) / float64(max(ticks, 1)) }
	fmt.Fprintf(out, "%d ticks ran; from the instant to the start of the run: p50 %v, p99 %v, most %v\n",
		m.ticks, part(50), part(99), m.late[len(m.late)-1])
	fmt.Fprintf(out, "commands per tick, all nodes together: %.1f in %.1f messages\n",
		per(m.calls, m.ticks), per(m.messages, m.ticks))
	fmt.Fprintf(out, "  of the replica that ran it %.1f, of one that did not %.1f\n",
		per(m.winner, m.winnerTicks), per(m.loser, m.loserTicks))
}
