package fakenode_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

func TestWithoutFaultsAnAnswerTakesNoTime(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		b.wants("-", 0, acquire(rival))
		b.wants("+", 0, release(mine))
		b.wants("", 0)
	})
}

func TestDelaysOfBothDirectionsAdd(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(30 * time.Millisecond))
		b.Faults().DelayReplies(fakenode.Fixed(12 * time.Millisecond))
		b.wants("+", 42*time.Millisecond, acquire(mine))
		b.Faults().DelayRequests(nil)
		b.wants("=", 12*time.Millisecond, acquire(mine))
		b.Faults().Clear()
		b.wants("=", 0, acquire(mine))
	})
}

func TestEffortKeepsCommandsWaitingForEachOther(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().Effort(10 * time.Millisecond)
		b.wants("+-", 20*time.Millisecond, acquire(mine), acquire(rival))
		b.Faults().Effort(1500 * time.Millisecond)
		b.wantsNothing(release(mine)) // it is done, and half a second of it is left
		b.Faults().Effort(10 * time.Millisecond)
		b.wants("+", 510*time.Millisecond, acquire(rival))
		b.Faults().Clear()
		b.wants("-", 0, acquire(mine))
	})
}

func TestALinksFaultsComeOnTop(t *testing.T) {
	inBubble(t, func(b *bench) {
		link := b.Link()
		b.Faults().DelayRequests(fakenode.Fixed(time.Millisecond))
		link.Faults().DelayRequests(fakenode.Fixed(2 * time.Millisecond))
		start := time.Now()
		if got, err := b.ask(link, acquire(mine)); got != "+" || err != nil {
			b.Errorf("got %q, %v", got, err)
		}
		if took := time.Since(start); took != 3*time.Millisecond {
			b.Errorf("took %v, want 3 ms", took)
		}
		b.wants("=", time.Millisecond, acquire(mine))
		link.Faults().LoseReplies(fakenode.Always)
		if _, err := b.ask(link, acquire(mine)); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v, want no answer", err)
		}
		b.wants("=", time.Millisecond, acquire(mine))
	})
}

func TestARequestIsExecutedAfterItsSenderGaveUp(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(3 * time.Second))
		b.wantsNothing(acquire(mine))
		pass(2*time.Second - 1)
		b.wantHolder("")
		pass(1)
		b.wantHolder(mine)
		if left := b.TTL(keys.Lock); left != ttl {
			b.Errorf("TTL: got %v, want %v from the arrival on", left, ttl)
		}
	})
}

func TestDelaysReorder(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		b.Faults().DelayRequests(fakenode.Fixed(3 * time.Second))
		b.wantsNothing(extend(mine))
		b.Faults().DelayRequests(nil)
		b.wants("+", 0, release(mine))
		b.wants("+", 0, acquire(rival))
		pass(2 * time.Second)
		b.wantHolder(rival)
		if n := b.Count("extend"); n != 1 {
			b.Errorf("extends seen: got %d, want 1", n)
		}
	})
}

func TestALostRequestIsNeverExecuted(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().LoseRequests(fakenode.Next(1))
		b.wantsNothing(acquire(mine))
		pass(time.Hour)
		b.wantHolder("")
		b.wants("+", 0, acquire(rival))
	})
}

func TestALostReplyWasExecuted(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().LoseReplies(fakenode.Next(1))
		b.wantsNothing(acquire(mine))
		b.wantHolder(mine)
		b.wants("=", 0, acquire(mine))
	})
}

func TestARepetitionIsExecutedOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().Repeat(fakenode.Repeats(1, 1, time.Second, time.Second))
		b.wants("+", 0, acquire(mine))
		b.Faults().Repeat(nil)
		b.wants("+", 0, release(mine))
		b.wantHolder("")
		pass(time.Second)
		b.wantHolder(mine) // a ghost: the repetition of a request that was answered long ago
		pass(time.Hour)
		if n := b.Count("acquire"); n != 2 {
			b.Errorf("acquires seen: got %d, want 2", n)
		}
	})
}

func TestTheRepetitionAnswersForALostReply(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().Repeat(fakenode.Repeats(1, 1, 20*time.Millisecond, 20*time.Millisecond))
		b.Faults().LoseReplies(fakenode.Next(1))
		b.wants("=", 20*time.Millisecond, acquire(mine))
	})
}

func TestTheRepetitionMayAnswerFirst(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().Repeat(fakenode.Repeats(1, 1, 20*time.Millisecond, 20*time.Millisecond))
		late := 100 * time.Millisecond
		b.Faults().DelayReplies(func() time.Duration {
			defer func() { late = 10 * time.Millisecond }()
			return late
		})
		b.wants("=", 30*time.Millisecond, acquire(mine))
	})
}

func TestABreakHalfWayLeavesTheFirstReplies(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().BreakReplies(func(calls int) int { return calls - 1 })
		got, err := b.ask(b.Node, acquire(mine), acquire(rival), extend(mine))
		if err == nil || got != "+-" {
			b.Errorf("got %q, %v; want the first two replies and an error", got, err)
		}
		b.Faults().BreakReplies(nil)
		b.wants("=", 0, acquire(mine))
	})
}

func TestANodeThatIsDownFailsAtOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().Down(true)
		b.wantsError(b.Node, acquire(mine))
		b.Faults().Down(false)
		b.wants("+", 0, acquire(mine))
	})
}

func TestARequestToANodeThatWentDownFailsOnArrival(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(30 * time.Millisecond))
		time.AfterFunc(10*time.Millisecond, func() { b.Faults().Down(true) })
		start := time.Now()
		_, err := b.ask(b.Node, acquire(mine))
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v, want an error of the way", err)
		}
		if took := time.Since(start); took != 30*time.Millisecond {
			b.Errorf("took %v, want 30 ms", took)
		}
		b.wantHolder("")
	})
}

func TestOneLinkCanBeDown(t *testing.T) {
	inBubble(t, func(b *bench) {
		link := b.Link()
		link.Faults().Down(true)
		b.wantsError(link, acquire(mine))
		b.wants("+", 0, acquire(mine))
	})
}

func TestDeadlinesCanBeIgnored(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().IgnoreDeadlines(3 * time.Second)
		b.Faults().DelayReplies(fakenode.Fixed(2 * time.Second))
		b.wants("+", 2*time.Second, acquire(mine))
		b.Faults().LoseReplies(fakenode.Always)
		start := time.Now()
		_, err := b.ask(b.Node, acquire(mine))
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v, want a time-out of the client's own", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			b.Errorf("took %v, want 3 s", took)
		}
	})
}

func TestCloseEndsTheWaitOfOneLink(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(100 * time.Millisecond))
		link := b.Link()
		time.AfterFunc(10*time.Millisecond, func() { _ = link.Close() })
		if _, err := b.ask(link, acquire(mine)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v, want the client's end", err)
		}
		b.wantsError(link, acquire(mine))
		pass(time.Second)
		b.wantHolder(mine) // it was on its way
		b.wants("=", 100*time.Millisecond, acquire(mine))
		_ = b.Close()
		b.wantsError(b.Node, acquire(mine))
		b.wantHolder(mine)
	})
}

func TestChancesRepeatThemselves(t *testing.T) {
	t.Parallel()
	one, other := fakenode.Chance(7, 0.3), fakenode.Chance(7, 0.3)
	jitter := fakenode.Jitter(7, time.Millisecond, 2*time.Millisecond)
	hits := 0
	for range 1000 {
		a, b := one(), other()
		if a != b {
			t.Fatal("one seed gave two results")
		}
		if a {
			hits++
		}
		if d := jitter(); d < time.Millisecond || d >= 2*time.Millisecond {
			t.Fatalf("jitter: got %v", d)
		}
	}
	if hits < 200 || hits > 400 {
		t.Errorf("a chance of 0.3: got %d of 1000", hits)
	}
}
