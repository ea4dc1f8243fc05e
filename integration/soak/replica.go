package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// replicaMode is the first argument of a process that is a replica.
const replicaMode = "replica"

// The job: one tick each second, of which each takes a while. Its Grace is the default, its
// interval.
const (
	jobName = "every second"
	jobCron = "* * * * * *"
	every   = time.Second
	grace   = every
	takes   = 100 * time.Millisecond
	ttl     = 2 * time.Second

	// What a node has to answer: all that the TTL allows, for machines that do much else.
	nodeTimeout = ttl / 4
)

// replicaMain is a replica: what an application's main would be, and its diary. It ends when its
// standard input does, so that it outlives nobody; what comes there before sets its clock.
func replicaMain(args []string) int {
	flags := flag.NewFlagSet(replicaMode, flag.ContinueOnError)
	name, addrs := flags.String("name", "", ""), flags.String("addrs", "", "")
	ahead := flags.Duration("ahead", 0, "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	d := &diary{name: *name}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	err := d.setClock(*ahead)
	if err == nil {
		go func() { cancel(d.obey(os.Stdin)) }()
		err = serve(ctx, *name, strings.Split(*addrs, ","), d)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *name, err)
		return 1
	}
	return 0
}

// A diary writes a replica's records.
type diary struct {
	name string
	mu   sync.Mutex // one line at a time
}

func (d *diary) write(r record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Replica, r.When = d.name, time.Now().UnixMilli()
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // plain strings and numbers
	}
	_, _ = os.Stdout.Write(append(line, '\n'))
}

func (d *diary) setClock(ahead time.Duration) error {
	err := setClock(ahead)
	if err == nil {
		d.write(record{Kind: isClock})
	}
	return err
}

// obey sets the clock to what each line says, until there are no more.
func (d *diary) obey(in io.Reader) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		ahead, err := time.ParseDuration(lines.Text())
		if err == nil {
			err = d.setClock(ahead)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// serve runs the job until ctx ends.
func serve(ctx context.Context, name string, addrs []string, d *diary) error {
	quiet := slog.New(slog.DiscardHandler)
	client, err := redlock.New(redlock.Config{
		Addrs: addrs, TTL: ttl, NodeTimeout: nodeTimeout, Identity: name, Logger: quiet})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := schedule.New(client, schedule.WithLogger(quiet),
		schedule.WithObserver(&schedule.Observer{Skipped: func(e schedule.TickEvent) {
			d.write(refusal(e.Tick.At, e.Err))
		}}))
	if err != nil {
		return err
	}
	if _, err := s.Add(jobName, gocron.CronJob(jobCron, true), d.job); err != nil {
		return err
	}
	s.Start()
	d.write(record{Kind: isReady})
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	err = s.Shutdown(ending)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}

// job is what each tick does.
func (d *diary) job(ctx context.Context, tick schedule.Tick) error {
	r := record{Kind: isRun, At: tick.At.UnixMilli(), Token: tick.Token}
	d.write(r)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.Kind = isDone
	d.write(r)
	return nil
}
