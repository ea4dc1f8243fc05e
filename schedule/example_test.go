package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
	"github.com/quorumlock/quorumlock/schedule"
)

// Two replicas with the same job. In a program each is a process of its own, with a client made by
// redlock.New. A one-time job is used here so that the example ends.
func Example() {
	nodes := redlocktest.Start(nil, 3)
	defer nodes.Close()
	ran := make(chan schedule.Tick)
	at := time.Now().Add(300 * time.Millisecond)

	for range 2 {
		client, err := nodes.Client(redlock.Config{})
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := schedule.New(client)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = s.Add("report", gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at)),
			func(ctx context.Context, tick schedule.Tick) error {
				ran <- tick
				return nil
			})
		if err != nil {
			fmt.Println(err)
			return
		}
		s.Start()
		defer s.Shutdown(context.Background())
	}

	tick := <-ran
	fmt.Println(tick.Job, tick.At.Equal(at.Truncate(time.Millisecond)), tick.Token > 0)
	select {
	case <-ran:
		fmt.Println("it ran twice")
	case <-time.After(200 * time.Millisecond):
		fmt.Println("it ran once")
	}

	// Output:
	// report true true
	// it ran once
}

// A gocron scheduler of your own, with a Locker that knows its instants.
func ExampleLocker_Bind() {
	nodes := redlocktest.Start(nil, 3)
	defer nodes.Close()
	client, err := nodes.Client(redlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	locker, err := schedule.NewLocker(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Shutdown() }()
	ran := make(chan bool)
	_, err = s.NewJob(gocron.DurationJob(200*time.Millisecond),
		gocron.NewTask(func() { ran <- true }), gocron.WithName("report"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := locker.Bind(s); err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	fmt.Println(<-ran)

	// Output:
	// true
}

// What would mean different instants on different replicas is refused.
func ExampleScheduler_Add() {
	nodes := redlocktest.Start(nil, 3)
	defer nodes.Close()
	client, err := nodes.Client(redlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := schedule.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(context.Background())
	noon := gocron.NewAtTimes(gocron.NewAtTime(12, 0, 0))
	_, err = s.Add("backup", gocron.DailyJob(2, noon),
		func(context.Context, schedule.Tick) error { return nil })
	fmt.Println(err)
	fmt.Println(errors.Is(err, redlock.ErrInvalid))

	// Output:
	// schedule: Add "backup": redlock: invalid: every 2 days: from when on? Give WithStartAt, the same on all replicas
	// true
}
