package quorum_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

const job = "ql:job:j"

// claim makes one claim for the tick at that time.
func (l *lab) claim(at time.Time) quorum.Outcome {
	return l.Acquire(context.Background(), quorum.Claim{
		Name: job, Token: quorum.NewToken("lab"), TTL: time.Second,
		Until: time.Now().Add(2 * timeout), Tick: at.UnixMilli(), Life: time.Hour})
}

func (l *lab) commit(out quorum.Outcome, at time.Time) bool {
	l.t.Helper()
	ok, _, err := l.CommitTick(context.Background(), quorum.Commit{
		Name: job, Token: out.Token, Tick: at.UnixMilli(), Fencing: out.Fencing, State: "run",
		Grace: 10 * time.Second, Life: time.Hour, Started: out.Started, TTL: time.Second,
	}, out.Voters)
	if err != nil {
		l.t.Errorf("commit: %v", err)
	}
	return ok
}

func verdict(out quorum.Outcome) quorum.TickVerdict {
	v, _, _ := quorum.DecideTick(out.Reads, func(string) bool { return false })
	return v
}

func TestATickIsCommittedOnceAndReadByTheNext(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		at := time.Now()
		first := l.claim(at)
		if first.Verdict != quorum.Won || verdict(first) != quorum.TickFree {
			t.Fatalf("first claim: %v, tick %v", first.Verdict, verdict(first))
		}
		synctest.Wait() // those nodes commit, too, which granted after the claim was won
		first.OnLate(func(news quorum.News) { first.Voters |= news.Granted })
		if !l.commit(first, at) {
			t.Fatal("the commit did not reach a majority")
		}
		synctest.Wait()
		held := l.claim(at)
		if held.Verdict != quorum.Held || verdict(held) != quorum.TickTaken {
			t.Errorf("while claimed: %v, tick %v, want held and taken", held.Verdict, verdict(held))
		}
		l.release(hold(job, first))
		second := l.claim(at)
		if second.Verdict != quorum.Won || verdict(second) != quorum.TickTaken {
			t.Errorf("afterwards: %v, tick %v, want won and taken", second.Verdict, verdict(second))
		}
		if l.commit(first, at) {
			t.Error("a commit went through without the claim")
		}
		l.release(hold(job, second))
	})
}

func TestAnAcknowledgementAfterTheClaimsValidityDoesNotCount(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		at := time.Now()
		out := l.claim(at)
		time.Sleep(990 * time.Millisecond) // keys live for another 10 ms, the validity is over
		if l.commit(out, at) {
			t.Error("committed after the claim's validity")
		}
		time.Sleep(time.Second)
	})
}

func TestNodesVoteForATickOnlyWhenTheirClocksShowIt(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.claim(time.Now().Add(700 * time.Millisecond))
		if out.Verdict != quorum.NoQuorum || out.Early != 700*time.Millisecond {
			t.Errorf("700 ms early: %v, early by %v", out.Verdict, out.Early)
		}
		time.Sleep(out.Early)
		if out = l.claim(time.Now()); out.Verdict != quorum.Won {
			t.Errorf("on time: %v", out.Verdict)
		}
		l.release(hold(job, out))
	})
}

// TestAClaimThatSeesAMarkWaitsForAllAnswers: what the slow nodes know may settle whose tick it is.
func TestAClaimThatSeesAMarkWaitsForAllAnswers(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		at := time.Now()
		first := l.claim(at)
		first.Voters = 1<<0 | 1<<1 // a commit that reached two nodes, and died
		if l.commit(first, at) {
			t.Fatal("two of five are no majority")
		}
		l.release(hold(job, first))
		synctest.Wait() // also on the node that is slow from now on
		slow := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
		l.nodes[4].Faults().DelayReplies(slow(timeout / 2))
		out := l.claim(at)
		if out.Verdict != quorum.Won || verdict(out) != quorum.TickFree {
			t.Errorf("with all answers: %v, tick %v, want won and free", out.Verdict, verdict(out))
		}
		if !l.commit(out, at) {
			t.Error("a larger token does not write over the marks of the dead claimer")
		}
		l.release(hold(job, out))
	})
}

func TestCommitAndConfirmEndWithTheirContext(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		at := time.Now()
		out := l.claim(at)
		for _, n := range l.nodes {
			n.Faults().Partition(true)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		ok, _, err := l.CommitTick(ctx, quorum.Commit{Name: job, Token: out.Token,
			Tick: at.UnixMilli(), Fencing: out.Fencing, State: "run", Started: out.Started,
			TTL: time.Second}, out.Voters)
		if ok || err != context.DeadlineExceeded {
			t.Errorf("commit: %v, %v", ok, err)
		}
		if got := l.ConfirmLease(ctx, hold(job, out), 1, time.Second); got.Err == nil {
			t.Errorf("confirm: %+v", got)
		}
		l.Stop()
		if _, _, err := l.CommitTick(context.Background(), quorum.Commit{Name: job, Token: "t",
			State: "run"}, out.Voters); err != quorum.ErrStopped {
			t.Errorf("commit of a stopped engine: %v", err)
		}
		if got := l.ConfirmLease(context.Background(), hold(job, out), 1, time.Second); got.Err == nil {
			t.Errorf("confirm of a stopped engine: %+v", got)
		}
	})
}

func TestConfirmLease(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		const guard = 500 * time.Millisecond
		ctx := context.Background()
		reading := func() int64 { return time.Now().UnixMilli() }
		first := l.won("lease")
		got := l.ConfirmLease(ctx, hold("lease", first), reading(), guard)
		if got.Verdict != quorum.HoldKept || got.TooNear {
			t.Errorf("the leader: %+v", got)
		}
		l.release(hold("lease", first))
		second := l.won("lease")
		if got := l.ConfirmLease(ctx, hold("lease", second), reading(), guard); got.Verdict ==
			quorum.HoldKept || !got.TooNear {
			t.Errorf("a new leader at the same moment: %+v, want too near", got)
		}
		if got := l.ConfirmLease(ctx, hold("lease", first), reading(), guard); got.Verdict !=
			quorum.HoldGone || got.Holder != second.Token {
			t.Errorf("the old leader: %+v, want gone to the new one", got)
		}
		time.Sleep(guard + time.Millisecond)
		if got := l.ConfirmLease(ctx, hold("lease", second), reading(), guard); got.Verdict !=
			quorum.HoldKept {
			t.Errorf("past the guard: %+v", got)
		}
		l.release(hold("lease", second))
	})
}

// TestARaiseLeavesAJobsMarksTheirLife: marks live two intervals of their job, which may be longer
// than the week of a register (T7).
func TestARaiseLeavesAJobsMarksTheirLife(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		const life = 62 * 24 * time.Hour
		ahead := time.Now().Add(time.Second).UnixMicro()
		for i, n := range l.nodes { // any two differ, so there is a raise
			token := strconv.FormatInt(ahead+int64(10*i), 10)
			n.SetHash("ql:h:"+job, map[string]string{"token": token}, life)
		}
		out := l.Acquire(context.Background(), quorum.Claim{
			Name: job, Token: quorum.NewToken("lab"), TTL: time.Second,
			Until: time.Now().Add(2 * timeout), Tick: time.Now().UnixMilli(), Life: life})
		if out.Verdict != quorum.Won || l.Counters().Raises.Load() == 0 {
			t.Fatalf("%v after %d raises, want won by a raise", out.Verdict, l.Counters().Raises.Load())
		}
		synctest.Wait()
		for i, n := range l.nodes {
			if left := n.TTL("ql:h:" + job); left < life-time.Minute {
				t.Errorf("node %d: marks live for %v, want %v", i, left, life)
			}
		}
		l.release(hold(job, out))
	})
}
