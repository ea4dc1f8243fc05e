package redlocktest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redlocktest"
)

// Two clients are two processes. In a test, give Start your t instead of nil: it closes all.
func Example() {
	q := redlocktest.Start(nil, 5)
	defer q.Close()
	ctx := context.Background()

	ours, err := q.Client(redlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rival, err := q.Client(redlock.Config{Identity: "the rival"})
	if err != nil {
		fmt.Println(err)
		return
	}

	lock, err := rival.TryLock(ctx, "nightly report")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = ours.TryLock(ctx, "nightly report")
	var round *redlock.RoundError
	if errors.As(err, &round) {
		fmt.Println("held:", errors.Is(err, redlock.ErrHeld), "by", round.Holder)
	}

	if err := lock.Unlock(ctx); err != nil {
		fmt.Println(err)
	}
	_, err = ours.TryLock(ctx, "nightly report")
	fmt.Println("after the unlock:", err)

	// Output:
	// held: true by the rival
	// after the unlock: <nil>
}

// A lock lives as long as a majority of the nodes does.
func ExampleNode_Stop() {
	q := redlocktest.Start(nil, 3)
	defer q.Close()
	c, err := q.Client(redlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	q.Node(0).Stop()
	_, err = c.TryLock(context.Background(), "with one node down")
	fmt.Println(err)

	q.Node(1).Stop()
	_, err = c.TryLock(context.Background(), "with two nodes down")
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrHeld))

	// Output:
	// <nil>
	// true false
}

// A process whose machine was suspended sees at its first look that its lock ran out.
func ExampleQuorum_StepClock() {
	q := redlocktest.Start(nil, 3)
	defer q.Close()
	c, err := q.Client(redlock.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err := c.Lock(context.Background(), "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	work := lock.Context()
	fmt.Println(work.Err())

	q.StepClock(c, redlock.DefaultTTL)
	fmt.Println(work.Err(), "because lost:", errors.Is(context.Cause(work), redlock.ErrLost))

	// Output:
	// <nil>
	// context canceled because lost: true
}
