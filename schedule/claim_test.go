package schedule

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// Each test is a finding about the protocol of ticks: T1 to T8 of the protocol review, R1 to R6 of
// its addendum. Three nodes; a claimer that dies is one that stops between two messages.

const second = time.Second

// tickAt is a due tick of a job with a tick a minute.
func tickAt(at time.Time) due { return newDue(at, at.Add(time.Minute), 0) }

// won claims a tick without going on, as a process that dies then.
func (c *claimer) won(t *testing.T, d due) quorum.Outcome {
	t.Helper()
	out := c.access.Engine.Acquire(t.Context(), quorum.Claim{Name: "ql:job:" + c.job,
		Token: quorum.NewToken(c.access.Identity), TTL: second, Until: time.Now().Add(second),
		Tick: d.ms(), Life: d.life()})
	if out.Verdict != quorum.Won {
		t.Fatalf("%s: claim: got %v, want it won", c.access.Identity, out.Verdict)
	}
	time.Sleep(10 * time.Millisecond) // until the last node has answered, too
	return out
}

// marks commits a claim on these nodes.
func (c *claimer) marks(t *testing.T, d due, out quorum.Outcome, nodes ...int) bool {
	t.Helper()
	var set quorum.Set
	for _, n := range nodes {
		set |= 1 << n
	}
	ok, _, err := c.access.Engine.CommitTick(t.Context(), quorum.Commit{Name: "ql:job:" + c.job,
		Token: out.Token, Tick: d.ms(), Fencing: out.Fencing, State: stateRun, Grace: d.grace,
		Life: d.life(), From: d.from(), Started: out.Started, TTL: second}, set)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// gets wants a claimer to get the tick.
func (c *claimer) gets(t *testing.T, d due) *grant {
	t.Helper()
	g, err := c.claim(t.Context(), d)
	if err != nil {
		t.Fatalf("%s: got %v, want the tick", c.access.Identity, err)
	}
	if g.lock != nil {
		_ = g.lock.Unlock(t.Context())
	}
	return g
}

// isRefused wants a claimer not to get the tick, and why.
func (c *claimer) isRefused(t *testing.T, d due, matches []error, not ...error) {
	t.Helper()
	if _, err := c.claim(t.Context(), d); err == nil {
		t.Errorf("%s: got the tick, want %v", c.access.Identity, matches)
	} else {
		wantIs(t, err, matches, not...)
	}
}

var (
	taken     = []error{ErrTickTaken, redlock.ErrHeld}
	undecided = []error{ErrTickUndecided, redlock.ErrNoQuorum}
)

// inBubble runs a test with three nodes and two or three claimers of one job.
func inBubble(t *testing.T, f func(t *testing.T, f *fleet, a, b, c *claimer)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fl := newFleet(t, 3)
		time.Sleep(90 * second)
		f(t, fl, fl.claimer("a", "job"), fl.claimer("b", "job"), fl.claimer("c", "job"))
	})
}

func TestATickIsTakenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, c *claimer) {
		d := tickAt(time.Now())
		first := a.gets(t, d)
		b.isRefused(t, d, taken, redlock.ErrNoQuorum, ErrTickUndecided)
		a.isRefused(t, d, taken, redlock.ErrNoQuorum)
		next := tickAt(time.Now().Add(second))
		time.Sleep(second)
		if second := c.gets(t, next); second.fencing <= first.fencing {
			t.Errorf("token: got %d after %d", second.fencing, first.fencing)
		}
	})
}

// A winner that dies before its commit costs no tick, nor do two in a row.
func TestTwoWinnersThatDie(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, c *claimer) {
		d := tickAt(time.Now())
		a.won(t, d)
		time.Sleep(second + time.Millisecond)
		b.won(t, d)
		began := time.Now()
		c.gets(t, d)
		if took := time.Since(began); took > 2*second {
			t.Errorf("the third got it after %v, want as soon as the second's claim ends", took)
		}
	})
}

// A claimer that gets no quorum for the run lock has passed nothing over: it asks again.
func TestARunLockWithoutAQuorum(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, _ *claimer) {
		lock, tries := a.access.Lock, 0
		a.access.Lock = func(
			ctx context.Context, name string, wait bool, options ...any,
		) (any, error) {
			if tries++; tries == 1 {
				return nil, a.access.Error("lock", name,
					quorum.Outcome{Verdict: quorum.NoQuorum})
			}
			return lock(ctx, name, wait, options...)
		}
		d := tickAt(time.Now())
		a.gets(t, d)
		if tries != 2 {
			t.Errorf("asked for the run lock %d times, want twice", tries)
		}
		b.isRefused(t, d, taken)
	})
}

// T1: marks that a node has forgotten. A's are on 0 and 1; 1 restarts empty and votes again; a
// late claim sees 1 and 2 only.
func TestT1ForgottenMarks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, _ *claimer) {
		d := tickAt(time.Now())
		if out := a.won(t, d); !a.marks(t, d, out, 0, 1) {
			t.Fatal("not committed")
		}
		f.nodes.Node(1).StartEmpty()
		time.Sleep(12 * second)
		f.nodes.Node(0).Stop()
		b.isRefused(t, d, undecided, ErrTickTaken, redlock.ErrHeld)
	})
}

// The same with a snapshot: the restarted node knows an older tick, and a newer one.
func TestT1SomeMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, _ *claimer) {
		old := tickAt(time.Now())
		a.gets(t, old)
		time.Sleep(second)
		d := tickAt(time.Now())
		if out := a.won(t, d); !a.marks(t, d, out, 0, 2) {
			t.Fatal("not committed")
		}
		f.nodes.Node(1).Start()
		time.Sleep(12 * second)
		a.gets(t, tickAt(time.Now()))
		f.nodes.Node(0).Stop()
		f.nodes.Node(2).StartEmpty()
		time.Sleep(12 * second)
		b.isRefused(t, d, undecided, ErrTickTaken, redlock.ErrHeld)
	})
}

// T2, R2: two claimers that die after marking one node each; their marks are not one owner's.
func TestT2TwoDeadClaimers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, c *claimer) {
		d := tickAt(time.Now())
		a.marks(t, d, a.won(t, d), 0)
		time.Sleep(second + time.Millisecond)
		b.marks(t, d, b.won(t, d), 1)
		time.Sleep(second + time.Millisecond)
		c.gets(t, d)
		a.isRefused(t, d, taken)
	})
}

// T2, what is left by right: A marked one node and died, another is down. A may have had both.
func TestT2AMarkAndANodeThatIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, _ *claimer) {
		d := tickAt(time.Now())
		a.marks(t, d, a.won(t, d), 0)
		f.nodes.Node(1).Stop()
		time.Sleep(second + time.Millisecond)
		done := make(chan error, 1)
		go func() {
			_, err := b.claim(t.Context(), d)
			done <- err
		}()
		time.Sleep(5 * second)
		select {
		case err := <-done:
			t.Fatalf("got %v before the node that may know more was back", err)
		default:
		}
		// Back with its memory, but it votes only after MaxTTL: within Grace, 30 s.
		f.nodes.Node(1).Start()
		if err := <-done; err == nil {
			t.Error("b got the tick by a node whose memory began after it")
		} else {
			wantIs(t, err, undecided, ErrTickTaken)
		}
	})
}

// T3, R6: the commit's acknowledgements are lost. The claimer itself knows that it has not started
// the tick; nobody else does.
func TestT3LostAcknowledgements(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, _ *claimer) {
		d := tickAt(time.Now())
		out := a.won(t, d)
		for _, n := range f.nodes.Nodes() {
			n.LoseReplies(1)
		}
		if a.marks(t, d, out, 0, 1, 2) {
			t.Fatal("committed without an acknowledgement")
		}
		time.Sleep(second)
		b.isRefused(t, d, taken)
		a.isRefused(t, d, taken)
		a.keepUnstarted(out.Token, d)
		a.gets(t, d)
		b.isRefused(t, d, taken)
	})
}

// T4: nodes do not vote for a tick before its time; the claimer waits for as long as they say.
func TestT4EarlyClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, _ *claimer) {
		at := time.Now().Add(700 * time.Millisecond).Truncate(time.Millisecond)
		d := tickAt(at)
		a.gets(t, d)
		if early := time.Until(at); early > 0 {
			t.Errorf("got the tick %v before its time", early)
		}
		b.isRefused(t, d, taken)

		far := newDue(time.Now().Add(5*second), time.Now().Add(6*second), 0)
		b.now = func() time.Time { return far.at } // a clock that is 5 s ahead
		b.isRefused(t, far, []error{ErrTickTooEarly, redlock.ErrNoQuorum}, redlock.ErrHeld)
	})
}

// gocron 409, robfig/cron 94: a timer fired early, the job ran before its time and then again at
// its time. Here a caller whose clock is a minute ahead gets a no, and robs nobody of the tick.
func TestACallAMinuteEarly(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, c *claimer) {
		at := time.Now().Add(time.Minute)
		d := newDue(at, at.Add(time.Minute), 0)
		now := a.now
		a.now = func() time.Time { return now().Add(time.Minute) }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := a.claim(ctx, d)
		wantIs(t, err, []error{ErrTickTooEarly, redlock.ErrNoQuorum}, redlock.ErrHeld)
		time.Sleep(time.Until(at))
		won := 0
		for _, asks := range []*claimer{a, b, c} {
			g, err := asks.claim(t.Context(), d)
			if err != nil {
				wantIs(t, err, taken, redlock.ErrNoQuorum)
				continue
			}
			won++
			if err := g.lock.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("the tick was given to %d of 3", won)
		}
	})
}

// T5: a tick that was passed over is not taken because a later one is.
func TestT5ALaterTickTakesNoEarlierOne(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, _ *claimer) {
		first, next := tickAt(time.Now().Add(-second)), tickAt(time.Now())
		a.gets(t, next)
		b.gets(t, first)
	})
}

// T6: a run that is under way holds no claim.
func TestT6RunsHoldNoClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, c *claimer) {
		d, next := tickAt(time.Now()), tickAt(time.Now().Add(second))
		running, err := a.claim(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(second)
		b.overlap = OverlapAllow
		began := time.Now()
		b.gets(t, next)
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("beside a run under way the next tick took %v", took)
		}
		// Under OverlapSkip it is passed over, on record.
		time.Sleep(second)
		later := tickAt(time.Now())
		c.isRefused(t, later, taken, redlock.ErrNoQuorum)
		_ = running.lock.Unlock(t.Context())
		b.isRefused(t, later, taken)
	})
}

func TestTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, b, _ *claimer) {
		d := newDue(time.Now().Add(-31*second), time.Now().Add(29*second), 0)
		a.isRefused(t, d, []error{ErrTickTooLate, redlock.ErrNoQuorum}, redlock.ErrHeld)
		// What is on record says more.
		b.gets(t, tickAt(time.Now()))
		old := tickAt(time.Now().Truncate(time.Millisecond))
		b.gets(t, old)
		time.Sleep(40 * second)
		a.isRefused(t, old, taken)
	})
}

// R1: a refusal is not read as "no mark". A owns 0 and 2 and marked 0; its key on 0 is gone. B owns
// 0 and 1. A's commit can still come to 2.
func TestR1RefusalsAreNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, _ *claimer) {
		d := tickAt(time.Now())
		f.nodes.Node(1).Cut()
		out := a.won(t, d)
		a.marks(t, d, out, 0)
		a.access.Engine.Release(quorum.Hold{Name: "ql:job:job", Token: out.Token, TTL: second,
			Touched: 1 << 0}, nil, nil)
		f.nodes.Node(1).Heal()
		time.Sleep(300 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := b.claim(ctx, d); err == nil {
			t.Error("b got the tick while a's commit could still come")
		} else {
			wantIs(t, err, undecided, ErrTickTaken)
		}
		if !a.marks(t, d, out, 0, 2) {
			// Its key on 0 is gone, its mark there is not: one acknowledgement is all it gets.
			time.Sleep(second)
			b.isRefused(t, d, taken, redlock.ErrNoQuorum)
		}
	})
}

// A Lock has to return as soon as its context ends, whatever it waits for.
func TestClaimsEndWithTheirContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, _ *claimer) {
		d := tickAt(time.Now())
		a.won(t, d)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := b.claim(ctx, d)
		wantIs(t, err, undecided)
		if took := time.Since(began); took > 101*time.Millisecond {
			t.Errorf("returned after %v, its context ended after 100ms", took)
		}
	})
}

func TestWithoutAQuorumTicksAreUndecided(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, _, _ *claimer) {
		f.nodes.Node(0).Stop()
		f.nodes.Node(1).Cut()
		d := newDue(time.Now(), time.Now().Add(second), 0)
		began := time.Now()
		a.isRefused(t, d, undecided, redlock.ErrHeld, ErrTickTaken)
		if took := time.Since(began); took < 500*time.Millisecond || took > second {
			t.Errorf("gave up after %v, want shortly before the next instant", took)
		}
	})
}

// A minority that fails or restarts empty costs nothing.
func TestAMinorityOfNodesFails(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fleet, a, b, c *claimer) {
		f.nodes.Node(0).Stop()
		d := tickAt(time.Now())
		a.gets(t, d)
		b.isRefused(t, d, taken)
		f.nodes.Node(0).StartEmpty()
		time.Sleep(second)
		d = tickAt(time.Now())
		c.gets(t, d)
		a.isRefused(t, d, taken)
	})
}
