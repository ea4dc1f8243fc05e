package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// A tap is a node whose batches are looked at.
type tap struct {
	*fakenode.Node
	exec func(ctx context.Context, batch *quorum.Batch) error // nil: the node's

	mu    sync.Mutex
	sizes []int
}

func (n *tap) Exec(ctx context.Context, batch *quorum.Batch) error {
	n.mu.Lock()
	n.sizes = append(n.sizes, len(batch.Calls))
	n.mu.Unlock()
	if n.exec != nil {
		return n.exec(ctx, batch)
	}
	return n.Node.Exec(ctx, batch)
}

func (n *tap) batches() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sizes)
}

// overTaps replaces the engine by one over taps of its nodes.
func (l *lab) overTaps() []*tap {
	l.stop()
	var taps []*tap
	var nodes []quorum.Node
	for i, n := range l.nodes {
		l.nodes[i] = fakenode.New(n.Name())
		taps = append(taps, &tap{Node: l.nodes[i]})
		nodes = append(nodes, taps[i])
	}
	l.start(nodes)
	return taps
}

func TestLaneSendsWhatQueuedUpTogether(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		node := l.overTaps()[0]
		met := len(node.batches())
		node.Faults().DelayReplies(fakenode.Fixed(100 * time.Microsecond))
		var callers sync.WaitGroup
		call := func(i int) {
			callers.Go(func() {
				if out := l.acquire(fmt.Sprint(i)); out.Verdict != quorum.Won {
					t.Errorf("acquire %d: %v %v", i, out.Verdict, out.Errs)
				}
			})
		}
		call(0)
		synctest.Wait() // the first flight is under way
		for i := range 63 {
			call(i + 1)
		}
		callers.Wait()
		if sizes := node.batches()[met:]; !slices.Equal(sizes, []int{1, 63}) {
			t.Errorf("batches of %d messages, want the first alone and the rest together", sizes)
		}
	})
}

func TestLaneSingleCallerWaitsForNobody(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		node := l.overTaps()[0]
		node.Faults().DelayReplies(fakenode.Fixed(time.Millisecond))
		began := time.Now()
		for i := range 10 {
			l.won(fmt.Sprint(i))
		}
		if took := time.Since(began); took != 10*time.Millisecond {
			t.Errorf("ten rounds of 1 ms took %v", took)
		}
	})
}

// TestLaneSpacesItsFlights: where a node is far, flights leave a sixteenth of a round trip apart, and
// what is asked for meanwhile goes together. Who comes later than that waits for nobody.
func TestLaneSpacesItsFlights(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		const trip = 16 * time.Millisecond
		node, met := l.farTap(trip)
		var callers sync.WaitGroup
		for _, c := range []struct{ at, took time.Duration }{
			{0, trip},
			{100 * time.Microsecond, trip + 900*time.Microsecond},
			{300 * time.Microsecond, trip + 700*time.Microsecond},
			{5 * time.Millisecond, trip},
			{9 * time.Millisecond, trip},
		} {
			callers.Go(func() {
				time.Sleep(c.at)
				began := time.Now()
				out := l.acquire(fmt.Sprint("at ", c.at))
				if took := time.Since(began); out.Verdict != quorum.Won || took != c.took {
					t.Errorf("who came at %v waited %v for %v, want %v", c.at, took, out.Verdict, c.took)
				}
			})
		}
		callers.Wait()
		if sizes := node.batches()[met:]; !slices.Equal(sizes, []int{1, 2, 1, 1}) {
			t.Errorf("batches of %d messages, want those together that came within a millisecond", sizes)
		}
	})
}

// farTap is the first node, as a tap that has been far for so long that nobody remembers shorter ways,
// and how many batches it has had.
func (l *lab) farTap(trip time.Duration) (node *tap, met int) {
	node = l.overTaps()[0]
	node.Faults().DelayReplies(fakenode.Fixed(trip))
	for began := time.Now(); time.Since(began) < 11*time.Second; {
		l.won(fmt.Sprint("far ", time.Since(began)))
	}
	time.Sleep(trip)
	return node, len(node.batches())
}

// TestWhoFindsNoRoomLeavesSoon: what a flight has no room for goes on the next one, and that leaves as
// soon as any other would.
func TestWhoFindsNoRoomLeavesSoon(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		const trip = 16 * time.Millisecond
		node, met := l.farTap(trip)
		began := time.Now()
		var callers sync.WaitGroup
		call := func(i int) {
			if out := l.acquire(fmt.Sprint("at once ", i)); out.Verdict != quorum.Won {
				t.Errorf("acquire %d: %v %v", i, out.Verdict, out.Errs)
			}
		}
		callers.Go(func() { call(-1) })
		synctest.Wait()
		for i := range quorum.MaxBatch + 300 {
			callers.Go(func() { call(i) })
		}
		callers.Wait()
		if sizes := node.batches()[met:]; !slices.Equal(sizes, []int{1, quorum.MaxBatch, 300}) {
			t.Errorf("batches of %d messages, want a full one and the rest behind it", sizes)
		}
		if took, want := time.Since(began), trip+2*trip/16; took != want {
			t.Errorf("it took %v, want %v", took, want)
		}
	})
}

// TestLaneKeepsTheOrderOfAKey is P3 of the protocol review: a release must not overtake the
// acquire that it takes back. Messages about other keys need not wait.
func TestLaneKeepsTheOrderOfAKey(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		node := l.nodes[0]
		var executed []string
		node.OnExecuted(func(e fakenode.Executed) {
			executed = append(executed, e.Script+" "+e.Args[0])
		})
		slow := true
		node.Faults().DelayRequests(func() time.Duration {
			defer func() { slow = false }()
			if slow {
				return timeout / 2
			}
			return 0
		})
		ctx, cancel := context.WithTimeout(context.Background(), timeout/10)
		defer cancel()
		l.acquireAs(ctx, "a", quorum.NewToken("lab")) // ends early: its release is waiting now
		l.won("b")
		time.Sleep(timeout)
		synctest.Wait()
		want := []string{"acquire b", "acquire a", "release a"}
		if !slices.Equal(executed, want) {
			t.Errorf("executed %q, want %q", executed, want)
		}
		l.wantKeys("a", "afterwards", false)
	})
}

func TestLaneAnswersAtTheDeadline(t *testing.T) {
	// go-redsync/redsync 98: a node's time-out looked like the caller's deadline.
	inBubble(t, 1, func(l *lab) {
		l.nodes[0].Faults().Partition(true)
		began := time.Now()
		out := l.acquire("a")
		if took := time.Since(began); took != timeout {
			t.Errorf("answered after %v, want NodeTimeout, %v", took, timeout)
		}
		if out.Verdict != quorum.NoQuorum || len(out.Errs) != 1 {
			t.Fatalf("%v, %d errors, want no quorum and one", out.Verdict, len(out.Errs))
		}
		err := out.Errs[0].Err
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%v matches a context's error, and no context ended", err)
		}
	})
}

// TestLeaderReturnsInTime: a contender that stays and asks again returned up to 8 ms late.
func TestLeaderReturnsInTime(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		l.nodes[1].Set("a", "ql1:rival/~", time.Minute) // goes last, so we lead
		l.nodes[2].Refuse("ERR no")
		until := time.Now().Add(20 * time.Millisecond)
		out := l.Acquire(context.Background(), quorum.Claim{
			Name: "a", Token: quorum.NewToken("lab"), TTL: ttl, Until: until})
		if late := time.Since(until); late > 0 || out.Verdict != quorum.NoQuorum && late < 0 &&
			out.Verdict != quorum.Split {
			t.Errorf("%v, %v after its bound", out.Verdict, late)
		}
		l.nodes[2].Refuse("")
		l.nodes[2].Set("a", "ql1:other/~", time.Minute)
		until = time.Now().Add(20 * time.Millisecond)
		out = l.Acquire(context.Background(), quorum.Claim{
			Name: "a", Token: quorum.NewToken("lab"), TTL: ttl, Until: until})
		if late := time.Since(until); late != 0 || out.Verdict != quorum.Split {
			t.Errorf("%v, %v after its bound, want split at its bound", out.Verdict, late)
		}
	})
}

func TestLaneProbesAFailingNode(t *testing.T) {
	// redis/go-redis 1737: after an outage a node has to be healthy within a second.
	inBubble(t, 1, func(l *lab) {
		node := l.nodes[0]
		node.Faults().Down(true)
		l.acquire("a")
		began := time.Now()
		for range 1000 {
			if out := l.acquire("a"); out.Verdict != quorum.NoQuorum {
				t.Fatalf("%v, and the node is down", out.Verdict)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a thousand rounds over a failing node took %v, want no time", took)
		}
		time.Sleep(time.Minute)
		node.Faults().Down(false)
		time.Sleep(time.Second)
		l.won("b")
		told := l.told()
		if len(told) != 2 || !strings.Contains(told[0], "refused") ||
			!strings.Contains(told[1], "<nil>") {
			t.Errorf("told %q, want one trouble and its end", told)
		}
		if n := l.count(0, "acquire"); n != 1 {
			t.Errorf("the node has seen %d acquires, want the last alone", n)
		}
	})
}

// TestUnsentRequestGetsNoRelease: what was never sent needs no taking back.
func TestUnsentRequestGetsNoRelease(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		node := l.nodes[0]
		node.Pause()
		first := make(chan quorum.Outcome, 1)
		go func() { first <- l.acquire("a") }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		l.acquireAs(ctx, "b", quorum.NewToken("lab")) // behind the first, given up unsent
		<-first
		var executed []string
		node.OnExecuted(func(e fakenode.Executed) {
			executed = append(executed, e.Script+" "+e.Args[0])
		})
		node.Resume()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(executed) == 0 || executed[0] != "acquire a" {
			t.Errorf("executed %q, want the acquire of a first", executed)
		}
		for _, what := range executed {
			if strings.HasSuffix(what, " b") {
				t.Errorf("executed %q, and nothing was sent about b", executed)
			}
		}
		l.wantKeys("a", "afterwards", false)
	})
}

func TestLaneSurvivesAClientThatPanics(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		taps := l.overTaps()
		taps[1].exec = func(context.Context, *quorum.Batch) error { panic("in a hook") }
		out := l.won("a")
		synctest.Wait()
		l.release(hold("a", out))
		taps[0].Faults().Down(true)
		out = l.acquire("b")
		if out.Verdict != quorum.NoQuorum || !strings.Contains(fmt.Sprint(out.Errs), "panicked") {
			t.Errorf("%v, %v, want no quorum that tells of the panic", out.Verdict, out.Errs)
		}
	})
}

// TestFrozenNodeCollectsNoQueue: at thousands of rounds a second a plain queue to a node that takes
// its time to fail would grow without end.
func TestFrozenNodeCollectsNoQueue(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		taps := l.overTaps()
		taps[2].Pause()
		before := runtime.NumGoroutine()
		for i := range 1000 {
			out := l.won(fmt.Sprint(i % 7))
			l.release(hold(fmt.Sprint(i%7), out))
			if i%10 == 0 {
				time.Sleep(10 * time.Millisecond) // a second in all
			}
		}
		if after := runtime.NumGoroutine(); after > before+200 {
			t.Errorf("goroutines went from %d to %d", before, after)
		}
		sent := 0
		for _, n := range taps[2].batches() {
			sent += n
		}
		if batches := len(taps[2].batches()); batches > 100 {
			t.Errorf("%d batches with %d messages were sent to a frozen node", batches, sent)
		}
		taps[2].Resume()
		time.Sleep(2 * time.Second)
		for i := range 7 {
			l.wantKeys(fmt.Sprint(i), "when it is back", false, false, false)
		}
	})
}

// TestDebtsArePaid: a key on a node that was away when it should have been freed does not stay
// there until its TTL has passed.
func TestDebtsArePaid(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		synctest.Wait()
		l.nodes[2].Faults().Down(true)
		l.release(hold("a", out))
		time.Sleep(2 * time.Second)
		l.wantKeys("a", "while it is down", false, false, true)
		l.nodes[2].Faults().Down(false)
		time.Sleep(time.Second)
		l.wantKeys("a", "a second after it is back", false, false, false)
	})
}

// TestDebtsEndWithTheKey: what the TTL has freed is not asked for any more.
func TestDebtsEndWithTheKey(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		synctest.Wait()
		l.nodes[2].Faults().Down(true)
		l.release(hold("a", out))
		time.Sleep(ttl + time.Second)
		l.nodes[2].Faults().Down(false)
		time.Sleep(5 * time.Second)
		if n := l.count(2, "release"); n != 0 {
			t.Errorf("%d releases of a key that had ended, want none", n)
		}
	})
}

func TestErrorRepliesToAReleaseAreRepeated(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		synctest.Wait()
		l.nodes[1].Refuse("BUSY a slow script")
		l.release(hold("a", out))
		time.Sleep(3 * time.Second)
		l.wantKeys("a", "while it is busy", false, true, false)
		l.nodes[1].Refuse("")
		time.Sleep(2 * time.Second)
		l.wantKeys("a", "afterwards", false, false, false)
	})
}

func TestLateAnswersAreDealtWith(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		for _, i := range []int{1, 2} {
			l.nodes[i].Faults().DelayReplies(fakenode.Fixed(3 * timeout))
			l.nodes[i].Faults().IgnoreDeadlines(10 * timeout)
		}
		began := time.Now()
		out := l.acquire("a")
		if took := time.Since(began); out.Verdict != quorum.NoQuorum || took != timeout {
			t.Errorf("%v after %v, want no quorum after %v", out.Verdict, took, timeout)
		}
		for _, i := range []int{1, 2} {
			l.nodes[i].Faults().Clear()
		}
		time.Sleep(2 * time.Second)
		if late := l.Counters().Late.Load(); late < 2 {
			t.Errorf("%d late answers were seen, want two", late)
		}
		l.wantKeys("a", "afterwards", false, false, false)
	})
}

// TestGhostKeyIsFreed is P3: an acquire that arrives after the release that should have taken it
// back.
func TestGhostKeyIsFreed(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		l.nodes[0].Faults().DelayRequests(fakenode.Fixed(timeout + timeout/2))
		l.acquire("a")
		l.nodes[0].Faults().Clear()
		time.Sleep(2*time.Second + timeout)
		if acquires := l.count(0, "acquire"); acquires != 1 {
			t.Fatalf("%d acquires were executed, want the late one", acquires)
		}
		l.wantKeys("a", "two seconds after it", false)
	})
}

// TestGhostKeyOfAShortLockIsFreed: the release found nothing, because the acquire was still on its
// way. A short lock waits less for its answers than a node may take.
func TestGhostKeyOfAShortLockIsFreed(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		delays := []time.Duration{timeout * 8 / 10}
		l.nodes[0].Faults().DelayRequests(func() (d time.Duration) {
			if len(delays) > 0 {
				d, delays = delays[0], delays[1:]
			}
			return d
		})
		began := time.Now()
		l.Acquire(context.Background(), quorum.Claim{Name: "a", Token: quorum.NewToken("lab"),
			TTL: 2 * timeout, Until: began.Add(timeout)})
		time.Sleep(timeout*9/10 - time.Since(began))
		l.wantKeys("a", "when the acquire has arrived", true)
		time.Sleep(timeout * 3 / 10)
		l.wantKeys("a", "a little later, before its TTL", false)
	})
}

// TestGhostKeyOfAFrozenNodeIsFreed: a node that was frozen for longer than the TTL sets keys when
// it goes on, and they would live for another TTL.
func TestGhostKeyOfAFrozenNodeIsFreed(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		l.nodes[0].Pause()
		l.acquire("a")
		time.Sleep(3 * ttl)
		l.nodes[0].Resume()
		time.Sleep(2 * time.Second)
		if acquires := l.count(0, "acquire"); acquires != 1 {
			t.Fatalf("%d acquires were executed, want the one before the frost", acquires)
		}
		l.wantKeys("a", "two seconds after the frost", false)
	})
}

// TestGhostKeyBehindARivalIsFreed: the release that overtook the acquire found a rival, and the
// node was frozen until the rival's key had ended. Then the acquire set ours.
func TestGhostKeyBehindARivalIsFreed(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		l.won("a") // the rival, and never freed
		delays := []time.Duration{timeout + timeout/2}
		l.nodes[0].Faults().DelayRequests(func() (d time.Duration) {
			if len(delays) > 0 {
				d, delays = delays[0], delays[1:]
			}
			return d
		})
		l.acquire("a")
		for l.count(0, "release") == 0 {
			time.Sleep(time.Millisecond) // of the bubble
		}
		if n := l.count(0, "acquire"); n != 1 {
			t.Fatalf("%d acquires were executed before the release, want the rival's", n)
		}
		l.nodes[0].Pause()
		time.Sleep(3 * ttl)
		l.nodes[0].Resume()
		time.Sleep(2 * time.Second)
		if n := l.count(0, "acquire"); n != 2 {
			t.Fatalf("%d acquires were executed, want the late one too", n)
		}
		l.wantKeys("a", "two seconds after the frost", false)
	})
}

// TestDebtsToANodeThatRefusesEnd: where every release is refused, none is repeated for ever.
func TestDebtsToANodeThatRefusesEnd(t *testing.T) {
	inBubble(t, 1, func(l *lab) {
		l.nodes[0].Refuse("NOPERM this user has no permissions", "acquire", "release")
		l.acquire("a")
		time.Sleep(2 * ttl)
		refused := l.count(0, "release")
		time.Sleep(time.Hour)
		if more := l.count(0, "release") - refused; more != 0 || refused == 0 {
			t.Errorf("%d releases in the first %v, %d in the hour after, want some and none",
				refused, 2*ttl, more)
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, nodes: []*fakenode.Node{fakenode.New("n1")}}
		l.start([]quorum.Node{l.nodes[0]})
		l.nodes[0].Faults().IgnoreDeadlines(time.Minute)
		l.nodes[0].Pause()
		go l.acquire("a")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		began := time.Now()
		_ = l.Close(ctx)
		if took := time.Since(began); took > timeout {
			t.Errorf("Close took %v, its context ended after %v", took, timeout)
		}
		if out := l.acquire("a"); out.Err != quorum.ErrStopped && out.Verdict != quorum.NoQuorum {
			t.Errorf("after Close: %v %v", out.Verdict, out.Err)
		}
		time.Sleep(2 * time.Minute)
	})
}
