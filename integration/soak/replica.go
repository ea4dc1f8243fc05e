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
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// replicaMode is the first argument of a process that is a replica.
const replicaMode = "replica"

// The job: one tick each second, of which each takes a while.
const (
	jobName = "every second"
	jobCron = "* * * * * *"
	takes   = 100 * time.Millisecond
	ttl     = 2 * time.Second
)

// A record is one line that a replica writes, at once, so that what was written is there also when
// the process is killed.
type record struct {
	Kind    string // "ready", "run", "done", "no"
	Replica string
	At      int64 // the tick's instant, ms
	Token   uint64
	When    int64  // this machine's clock, ms
	Why     string // "no"
}

// replicaMain is a replica: what an application's main would be, and its diary. It ends when its
// standard input does, so that it outlives nobody.
func replicaMain(args []string) int {
	flags := flag.NewFlagSet(replicaMode, flag.ContinueOnError)
	name, addrs := flags.String("name", "", ""), flags.String("addrs", "", "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var writing sync.Mutex
	write := func(r record) {
		r.Replica, r.When = *name, time.Now().UnixMilli()
		line, err := json.Marshal(r)
		if err != nil {
			panic(err) // plain strings and numbers
		}
		writing.Lock()
		defer writing.Unlock()
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
	if err := serve(ctx, *name, strings.Split(*addrs, ","), write); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", *name, err)
		return 1
	}
	return 0
}

// serve runs the job until ctx ends.
func serve(ctx context.Context, name string, addrs []string, write func(record)) error {
	quiet := slog.New(slog.DiscardHandler)
	client, err := redlock.New(redlock.Config{Addrs: addrs, TTL: ttl, Identity: name, Logger: quiet})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := schedule.New(client, schedule.WithLogger(quiet),
		schedule.WithObserver(&schedule.Observer{Skipped: func(e schedule.TickEvent) {
			write(record{Kind: "no", At: e.Tick.At.UnixMilli(), Why: reason(e.Err)})
		}}))
	if err != nil {
		return err
	}
	_, err = s.Add(jobName, gocron.CronJob(jobCron, true), func(ctx context.Context, tick schedule.Tick) error {
		r := record{Kind: "run", At: tick.At.UnixMilli(), Token: tick.Token}
		write(r)
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.Kind = "done"
		write(r)
		return nil
	})
	if err != nil {
		return err
	}
	s.Start()
	write(record{Kind: "ready"})
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return s.Shutdown(ending)
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
	return "other: " + err.Error()
}
