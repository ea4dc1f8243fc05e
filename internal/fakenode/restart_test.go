package fakenode_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/nodetest"
	"github.com/quorumlock/quorumlock/internal/script"
)

func TestAPausedNodeExecutesInTheOrderOfArrival(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Pause()
		b.wantsNothing(acquire(mine))
		b.wantsNothing(acquire(rival))
		b.wantsNothing(release(mine))
		b.wantsNothing(acquire(rival))
		b.wantHolder("")
		var seen []string
		b.OnExecuted(func(e fakenode.Executed) { seen = append(seen, e.Script+" "+e.Reply[:1]) })
		b.Resume()
		want := "[acquire + acquire - release + acquire +]"
		if got := fmt.Sprint(seen); got != want {
			b.Errorf("executed: got %s, want %s", got, want)
		}
		b.wantHolder(rival)
	})
}

func TestAPausedNodeAnswersThoseWhoStillWait(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Pause()
		time.AfterFunc(300*time.Millisecond, b.Resume)
		b.wants("+", 300*time.Millisecond, acquire(mine))
	})
}

func TestForgettingLosesEverythingAndIsAnotherMemory(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		replid, run := b.Identity(), b.RunID()
		b.Forget()
		if keys := b.Keys(); len(keys) != 0 {
			b.Errorf("keys: got %v, want none", keys)
		}
		if b.Identity() == replid || b.RunID() == run {
			b.Error("the identity stayed")
		}
		b.wants("+", 0, acquire(rival))
	})
}

func TestAFlushLosesEverythingUnderTheSameIdentity(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		replid, run := b.Identity(), b.RunID()
		b.Flush()
		if keys := b.Keys(); len(keys) != 0 {
			b.Errorf("keys: got %v, want none", keys)
		}
		if b.Identity() != replid || b.RunID() != run {
			b.Error("the identity changed")
		}
	})
}

func TestARestartKeepsTheDataAndIsAnotherMemory(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		replid := b.Identity()
		b.Restart()
		if b.Identity() == replid {
			b.Error("the identity stayed")
		}
		b.wants("-", 0, acquire(rival))
		if text := b.replication(); !strings.Contains(text, "master_replid:"+b.Identity()) {
			b.Errorf("INFO replication: got %q", text)
		}
	})
}

func TestASnapshotBringsBackAMoment(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		pass(time.Second)
		old := b.Snapshot()
		b.wants("+", 0, release(mine))
		b.wants("+", 0, acquire(rival))
		register, _ := b.HGet(keys.Register, "token")
		for range 2 { // it is not used up
			b.RestartFromSnapshot(old)
			b.wantHolder(mine)
			if got, _ := b.HGet(keys.Register, "token"); got == register {
				b.Error("the register is not that of the moment")
			}
			if left := b.TTL(keys.Lock); left != ttl-time.Second {
				b.Errorf("TTL: got %v, want %v", left, ttl-time.Second)
			}
			b.wants("+", 0, release(mine))
		}
		pass(ttl)
		b.RestartFromSnapshot(old)
		b.wantHolder("") // its end has passed
	})
}

func TestARestartBreaksWhatHadArrived(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Pause()
		time.AfterFunc(100*time.Millisecond, b.Restart)
		start := time.Now()
		if _, err := b.ask(b.Node, acquire(mine)); err == nil {
			b.Error("got no error")
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			b.Errorf("took %v, want 100 ms", took)
		}
		b.wantHolder("")
		b.wants("+", 0, acquire(mine)) // and it runs
	})
}

func TestARequestOnItsWayReachesTheRestartedNode(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(100 * time.Millisecond))
		time.AfterFunc(50*time.Millisecond, b.Forget)
		b.wants("+", 100*time.Millisecond, acquire(mine))
	})
}

func TestARestartBetweenTwoCallsBreaksTheBatch(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.OnExec(func(script string, args []string) {
			if script == "extend" {
				b.Forget()
			}
		})
		b.wantsError(b.Node, acquire(mine), extend(mine), acquire(mine))
		b.wantHolder("")
		if n := b.Count("acquire"); n != 1 {
			b.Errorf("acquires seen: got %d, want 1", n)
		}
	})
}

func TestASilentNodeGivesNoVote(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		b.GuardFor(ttl)
		b.Forget()
		start := b.Now()
		b.wants("~", 0, acquire(rival))
		pass(ttl - 1)
		batch := batchOf(acquire(rival))
		if err := b.Exec(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		reply, err := script.ParseAcquire(batch.Calls[0].Reply)
		if err != nil || reply.Letter != script.Waits {
			b.Fatalf("got %q, %v; want '~'", batch.Calls[0].Reply, err)
		}
		since, from := time.Duration(start.UnixNano()), time.Duration(start.Add(ttl).UnixNano())
		if reply.Since != since || reply.From != from || reply.MaxTTL != ttl {
			b.Errorf("got %+v, want since %v, from %v, max %v", reply, since, from, ttl)
		}
		pass(1)
		b.wants("+", 0, acquire(rival))
	})
}

func TestASilenceEndsByTheNodesClock(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.SilentFor(ttl)
		b.wants("~", 0, acquire(mine))
		b.StepClock(ttl)
		b.wants("+", 0, acquire(mine))
		b.SilentFor(ttl)
		b.wants("~++", 0, acquire(mine), extend(mine), release(mine))
		b.SilentFor(0)
		b.wants("+", 0, acquire(mine))
	})
}

func TestASilencesEndIsTheFloorOfRegisters(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Forget()
		b.SilentFor(ttl)
		end := b.Now().Add(ttl)
		pass(ttl + time.Second)
		low := nodetest.Acquire{Keys: keys, Token: mine, TTL: ttl, Proposed: 1,
			Allowance: ttl / 2, HalfLife: week / 2, Life: week, MaxTTL: ttl}
		b.wants("+", 0, low.Command())
		if got, _ := b.HGet(keys.Register, "token"); got != fmt.Sprint(end.UnixMicro()) {
			b.Errorf("register: got %s, want %d", got, end.UnixMicro())
		}
	})
}
