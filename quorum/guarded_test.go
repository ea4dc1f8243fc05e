package quorum_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// guarded runs a test of an engine with the restart guard over n nodes that were never seen.
func guarded(t *testing.T, n int, test func(*lab)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t}
		var nodes []quorum.Node
		for i := range n {
			l.nodes = append(l.nodes, fakenode.New(string(rune('a'+i))+":1"))
			nodes = append(nodes, l.nodes[i])
		}
		tell := func(text string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.trouble = append(l.trouble, text)
		}
		l.Engine = quorum.New(nodes, quorum.Settings{
			NodeTimeout: timeout, MaxTTL: ttl, DriftFactor: 0.01, Clock: clock.System{}, Guard: true,
			OwnStep: func(d time.Duration) { tell("own step " + d.String()) },
			Warn:    func(_ int, text string) { tell(text) },
			Trouble: func(_ int, err error) {
				if err != nil {
					tell(err.Error())
				}
			},
		})
		test(l)
		l.stop()
	})
}

// admit says that all nodes are new.
func (l *lab) admit() {
	l.t.Helper()
	if errs := l.Admit(context.Background(), all(len(l.nodes))); len(errs) > 0 {
		l.t.Fatalf("Admit: %v", errs)
	}
}

func TestNewNodesWaitAndAnOperatorLetsThemVote(t *testing.T) {
	guarded(t, 3, func(l *lab) {
		out := l.acquire("a")
		if out.Verdict != quorum.NoQuorum || out.Remaining != ttl {
			t.Errorf("new nodes: %v, remaining %v, want no quorum for %v", out.Verdict,
				out.Remaining, ttl)
		}
		var wait *quorum.WaitError
		if len(out.Errs) < 2 || !errors.As(out.Errs[0].Err, &wait) ||
			!strings.Contains(wait.Error(), "memory is new") {
			t.Errorf("errors %v, want that they wait", out.Errs)
		}
		time.Sleep(ttl - time.Millisecond)
		if out := l.acquire("a"); out.Verdict != quorum.NoQuorum {
			t.Errorf("a moment before MaxTTL: %v", out.Verdict)
		}
		time.Sleep(time.Millisecond)
		l.release(hold("a", l.won("a")))
		for _, n := range l.nodes[:2] {
			n.Forget()
		}
		if out := l.acquire("a"); out.Verdict != quorum.NoQuorum {
			t.Errorf("two that forgot: %v", out.Verdict)
		}
		l.admit()
		l.release(hold("a", l.won("a")))
	})
}

func TestAdmitNamesTheNodesThatAreNotAdmitted(t *testing.T) {
	guarded(t, 3, func(l *lab) {
		l.nodes[1].Faults().Down(true)
		l.nodes[2].Faults().Partition(true)
		errs := l.Admit(context.Background(), all(3))
		if len(errs) != 2 || errs[0].Node+errs[1].Node != 3 {
			t.Errorf("got %v, want errors of the second and third node", errs)
		}
		l.nodes[0].Demote(fakenode.New("primary:1"))
		errs = l.Admit(context.Background(), 1)
		if len(errs) != 1 || !strings.Contains(errs[0].Err.Error(), "replica") {
			t.Errorf("a replica: %v", errs)
		}
	})
}

// TestAVoteUnderAnotherMemoryIsTakenBack: the script found the identity that it expected, and INFO
// after it another one. The key must not stay there.
func TestAVoteUnderAnotherMemoryIsTakenBack(t *testing.T) {
	guarded(t, 3, func(l *lab) {
		l.admit()
		l.release(hold("a", l.won("a")))
		var once sync.Once
		l.nodes[0].OnExecuted(func(e fakenode.Executed) {
			if e.Script == "acquire" {
				once.Do(func() { l.nodes[0].Promote() }) // between the script and INFO
			}
		})
		out := l.won("a")
		time.Sleep(timeout)
		if out.Voters.Has(0) {
			t.Error("the node whose memory changed counts")
		}
		l.wantKeys("a", "after a vote that was void", false, true, true)
		l.release(hold("a", out))
	})
}

func TestNodesThatGiveNoVote(t *testing.T) {
	for name, c := range map[string]struct {
		be   func(l *lab)
		says string
	}{
		"replicas without min-replicas-to-write": {
			func(l *lab) { l.nodes[0].ShowReplicas(1, false); l.nodes[1].ShowReplicas(1, false) },
			"min-replicas-to-write"},
		"members of a cluster": {
			func(l *lab) {
				l.nodes[0].SetNature(fakenode.Nature{Cluster: true})
				l.nodes[1].SetNature(fakenode.Nature{Cluster: true})
			}, "Cluster"},
		"one server behind several addresses": {
			func(l *lab) {
				for _, n := range l.nodes {
					n.SetNature(fakenode.Nature{RunID: "same"})
				}
			}, "same server"},
		"a replica of another node": {
			func(l *lab) {
				for _, n := range l.nodes[:2] {
					n.Demote(l.nodes[2])
					n.SetNature(fakenode.Nature{Primary: "c:1"})
				}
			}, "c:1"},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, 3, func(l *lab) {
				c.be(l)
				l.Admit(context.Background(), all(3))
				out := l.acquire("a")
				if out.Verdict != quorum.NoQuorum || len(out.Errs) == 0 ||
					!strings.Contains(out.Errs[0].Err.Error(), c.says) {
					t.Errorf("%v %v, want no quorum because of %q", out.Verdict, out.Errs, c.says)
				}
			})
		})
	}
}

func TestWithoutInfoTheGuardIsOff(t *testing.T) {
	guarded(t, 3, func(l *lab) {
		for _, n := range l.nodes {
			n.Refuse("NOPERM this user has no permissions to run the 'info' command", "info")
		}
		l.release(hold("a", l.won("a")))
		for _, r := range l.Survey(context.Background()) {
			if !r.GuardOff || !r.Reachable || r.Err != nil || len(r.Warnings) == 0 {
				t.Errorf("survey: %+v, want that the guard is off, and a warning", r)
			}
		}
	})
}

func TestSurvey(t *testing.T) {
	guarded(t, 3, func(l *lab) {
		l.nodes[1].Faults().Down(true)
		l.nodes[2].StepClock(time.Minute)
		l.nodes[0].SetNature(fakenode.Nature{Evicts: "allkeys-lru"})
		all := l.Survey(context.Background())
		if all[0].Version == "" || all[0].Err == nil || all[0].VotesFrom.IsZero() {
			t.Errorf("a new node: %+v, want from when it votes", all[0])
		}
		if len(all[0].Warnings) != 1 || !strings.Contains(all[0].Warnings[0], "noeviction") {
			t.Errorf("an evicting node: %v", all[0].Warnings)
		}
		if all[1].Reachable || all[1].Err == nil {
			t.Errorf("a node that is down: %+v", all[1])
		}
		if d := all[2].Offset - time.Minute; d.Abs() > 10*time.Millisecond {
			t.Errorf("offset %v, want a minute", all[2].Offset)
		}
	})
}

func TestAClockStepTakesTheVote(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			guarded(t, 3, func(l *lab) {
				l.admit()
				l.release(hold("a", l.won("a")))
				if offset, known := l.Offset(); !known || offset.Abs() > time.Millisecond {
					t.Errorf("offset %v, known %v", offset, known)
				}
				l.nodes[0].StepClock(step)
				out := l.won("b")
				time.Sleep(2 * timeout)
				if out.Voters.Has(0) || l.keyOn(0, "b") {
					t.Error("the node whose clock stepped votes")
				}
				told := strings.Join(l.told(), "\n")
				if !strings.Contains(told, "stepped") || strings.Contains(told, "own step") {
					t.Errorf("told %q, want the node's step", told)
				}
				time.Sleep(ttl)
				if out := l.won("c"); !out.Voters.Has(0) {
					t.Error("MaxTTL later it still has no vote")
				}
			})
		})
	}
}

func TestAStepOfMostNodesIsOurs(t *testing.T) {
	guarded(t, 3, func(l *lab) {
		l.admit()
		l.release(hold("a", l.won("a")))
		for _, n := range l.nodes {
			n.StepClock(time.Minute) // as seen from a machine that was paused
		}
		l.acquire("b") // finds out
		time.Sleep(2 * timeout)
		if told := strings.Join(l.told(), "\n"); !strings.Contains(told, "own step 1m0s") {
			t.Errorf("told %q, want our own step of a minute", told)
		}
		time.Sleep(ttl)
		l.release(hold("b", l.won("b")))
	})
}

func TestSwapHandsOverOnce(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		ctx := context.Background()
		out := l.won("a")
		x := l.Swap(ctx, "a", out.Token, "ql1:second/1", ttl, all(3))
		if x.Verdict != quorum.HoldKept || x.Voters.Len() < 2 {
			t.Fatalf("first: %+v", x)
		}
		y := l.Swap(ctx, "a", out.Token, "ql1:third/1", ttl, all(3))
		if y.Verdict != quorum.HoldGone || y.Holder != "ql1:second/1" {
			t.Errorf("the same handle again: %+v, want gone to the second", y)
		}
		seen, err := l.Inspect(ctx, "a")
		holder, nodes, left := quorum.Strongest(seen)
		if err != nil || holder != "ql1:second/1" || nodes != 3 || left <= 0 {
			t.Errorf("inspect: %q on %d for %v, %v", holder, nodes, left, err)
		}
		freed, err := l.Free(ctx, "a", "ql1:other/1", all(3))
		if err != nil || freed[0].Freed || freed[0].Holder != "ql1:second/1" {
			t.Errorf("free by another token: %+v, %v", freed, err)
		}
		if freed, err = l.Free(ctx, "a", "ql1:second/1", all(3)); err != nil || !freed[2].Freed {
			t.Errorf("free: %+v, %v", freed, err)
		}
		l.Stop()
		if _, err := l.Inspect(ctx, "a"); !errors.Is(err, quorum.ErrStopped) {
			t.Errorf("inspect by a stopped engine: %v", err)
		}
		if _, err := l.Free(ctx, "a", "t", all(3)); !errors.Is(err, quorum.ErrStopped) {
			t.Errorf("free by a stopped engine: %v", err)
		}
	})
}

func TestAnEarHearsAReleaseOnce(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		ear, other := l.Listen("a"), l.Listen("b")
		<-ear.Ready()
		ear.Await(out.Token)
		l.release(hold("a", out))
		<-ear.Freed()
		synctest.Wait()
		select {
		case <-ear.Freed():
			t.Error("woken twice by one release")
		case <-other.Freed():
			t.Error("woken by the release of another name")
		default:
		}
		for _, n := range l.nodes {
			n.BreakListeners()
		}
		<-ear.Freed() // what was published meanwhile may have been missed
		other.Close()
		ear.Close()
		ear.Close()
	})
}

func TestTheOffsetIsKnownWithoutAGuard(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		for _, n := range l.nodes {
			n.StepClock(time.Minute)
		}
		l.release(hold("a", l.won("a")))
		offset, known := l.Offset()
		if d := offset - time.Minute; !known || d.Abs() > time.Second {
			t.Errorf("offset %v, known %v, want a minute", offset, known)
		}
	})
}
