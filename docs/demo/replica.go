package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// replicaMode is the first argument of a process that is a replica.
const replicaMode = "replica"

// The jobs of the demo: the same table on every replica.
var jobs = []struct {
	name  string
	cron  string
	every time.Duration
	takes time.Duration
}{
	{"every second", "* * * * * *", time.Second, 150 * time.Millisecond},
	{"every 5 s", "*/5 * * * * *", 5 * time.Second, 1200 * time.Millisecond},
}

// A record is one line that a replica writes. Runs write theirs themselves, straight to the pipe,
// so that what was written is there also when the process is killed.
type record struct {
	Kind  string `json:"k"` // "ready", "run", "done", "won", "no"
	Job   string `json:"j,omitempty"`
	At    int64  `json:"t,omitempty"` // ms
	Token uint64 `json:"f,omitempty"`
	Votes int    `json:"v,omitempty"`
	Claim int64  `json:"c,omitempty"` // us
	Late  int64  `json:"l,omitempty"` // us
	Why   string `json:"w,omitempty"` // "no": taken, passed over, undecided, early, late, other
	Text  string `json:"x,omitempty"`
}

// A diary writes records, one line and one write each.
type diary struct {
	mu  sync.Mutex
	out io.Writer
}

func (d *diary) write(r record) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // plain strings and numbers
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.out.Write(append(line, '\n'))
}

// replicaMain is a replica: what an application's main would be, and the diary.
func replicaMain(args []string) int {
	quorum.Mute() // go-redis tells of every connection to a node that is down
	flags := flag.NewFlagSet(replicaMode, flag.ContinueOnError)
	name := flags.String("name", "", "")
	addrs := flags.String("addrs", "", "")
	skew := flags.Duration("skew", 0, "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // the demo's end is the replica's end
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := serve(ctx, *name, strings.Split(*addrs, ","), *skew); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *name, err)
		return 1
	}
	return 0
}

// serve runs the jobs until ctx ends.
func serve(ctx context.Context, name string, addrs []string, skew time.Duration) error {
	client, err := newClient(name, addrs, skew)
	if err != nil {
		return err
	}
	defer client.Close()
	d := &diary{out: os.Stdout}
	s, err := schedule.New(client, schedule.WithObserver(observe(d)),
		schedule.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	for _, job := range jobs {
		_, err := s.Add(job.name, gocron.CronJob(job.cron, true), work(d, job.takes))
		if err != nil {
			return err
		}
	}
	if err := awaitNodes(ctx, client, name); err != nil {
		return err
	}
	s.Start()
	d.write(record{Kind: "ready"})
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return s.Shutdown(ending)
}

// newClient makes the client, with both our clock and gocron's off by skew.
func newClient(name string, addrs []string, skew time.Duration) (*redlock.Client, error) {
	cfg := redlock.Config{TTL: 2 * time.Second, Identity: name,
		Logger: slog.New(slog.DiscardHandler)}
	if skew == 0 {
		cfg.Addrs = addrs
		return redlock.New(cfg)
	}
	var nodes []quorum.Node
	for _, addr := range addrs {
		node, err := quorum.Dial(addr, 250*time.Millisecond)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	client, err := door.NewClient(cfg, nodes, skewed{skew})
	if err != nil {
		return nil, err
	}
	return client.(*redlock.Client), nil
}

// skewed is a machine whose wall clock is wrong.
type skewed struct{ by time.Duration }

func (s skewed) Now() clock.Reading {
	now := clock.System{}.Now()
	now.Wall += s.by
	return now
}

// awaitNodes waits until the nodes vote: a new one does so MaxTTL after it was first spoken to.
func awaitNodes(ctx context.Context, client *redlock.Client, name string) error {
	lock, err := client.Lock(ctx, "demo: "+name+" is up")
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

// work is what a job does: it records itself with its fencing token, and takes its time.
func work(d *diary, takes time.Duration) func(context.Context, schedule.Tick) error {
	return func(ctx context.Context, tick schedule.Tick) error {
		r := record{Kind: "run", Job: tick.Job, At: tick.At.UnixMilli(), Token: tick.Token}
		d.write(r)
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.Kind = "done"
		d.write(r)
		return nil
	}
}

// observe writes down what the scheduler says of ticks, for the view and for the reasons.
func observe(d *diary) *schedule.Observer {
	return &schedule.Observer{
		Started: func(e schedule.TickEvent) {
			d.write(record{Kind: "won", Job: e.Tick.Job, At: e.Tick.At.UnixMilli(),
				Votes: e.Votes, Claim: e.Claim.Microseconds(), Late: e.Late.Microseconds()})
		},
		Skipped: func(e schedule.TickEvent) {
			d.write(record{Kind: "no", Job: e.Tick.Job, At: e.Tick.At.UnixMilli(),
				Why: reason(e.Err), Text: e.Err.Error()})
		},
	}
}

// reason puts an error into a word.
func reason(err error) string {
	switch {
	case errors.Is(err, schedule.ErrTickTaken) && strings.Contains(err.Error(), "passed over"):
		return "passed over"
	case errors.Is(err, schedule.ErrTickTaken):
		return "taken"
	case errors.Is(err, schedule.ErrTickUndecided):
		return "undecided"
	case errors.Is(err, schedule.ErrTickTooEarly):
		return "early"
	case errors.Is(err, schedule.ErrTickTooLate):
		return "late"
	}
	return "other"
}
