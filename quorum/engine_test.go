package quorum_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// timeout of a node's answer in these tests, and TTL of their locks.
const (
	timeout = 100 * time.Millisecond
	ttl     = 10 * time.Second
)

// A lab is an engine over nodes in memory, in a bubble.
type lab struct {
	*quorum.Engine
	t     *testing.T
	nodes []*fakenode.Node

	before []map[string]int // what the nodes had seen when the test began

	mu      sync.Mutex
	trouble []string // what was told of nodes, and when
}

// inBubble runs a test of an engine over n nodes. At its end the engine is closed, and the bubble
// tells if a goroutine is left.
func inBubble(t *testing.T, n int, test func(*lab)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t}
		var nodes []quorum.Node
		for i := range n {
			node := fakenode.New(fmt.Sprintf("n%d", i+1))
			l.nodes = append(l.nodes, node)
			nodes = append(nodes, node)
		}
		l.start(nodes)
		test(l)
		l.stop()
	})
}

// start makes the engine and lets it meet its nodes, which it asks about themselves first.
func (l *lab) start(nodes []quorum.Node) {
	began := time.Now()
	l.Engine = quorum.New(nodes, quorum.Settings{
		NodeTimeout: timeout, MaxTTL: ttl, DriftFactor: 0.01, Clock: clock.System{},
		Trouble: func(node int, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.trouble = append(l.trouble,
				fmt.Sprintf("%v: node %d: %v", time.Since(began), node, err))
		},
	})
	l.release(hold("warm", l.won("warm")))
	synctest.Wait()
	l.before = nil
	for _, n := range l.nodes {
		l.before = append(l.before, n.Counts())
	}
}

// count is how many commands of a script node i has seen since the test began.
func (l *lab) count(i int, script string) int {
	return l.nodes[i].Count(script) - l.before[i][script]
}

func (l *lab) stop() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*timeout)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		l.t.Errorf("Close: %v", err)
	}
}

// told is what was told of nodes so far.
func (l *lab) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.trouble...)
}

// acquire makes one attempt.
func (l *lab) acquire(name string) quorum.Outcome {
	return l.acquireAs(context.Background(), name, quorum.NewToken("lab"))
}

func (l *lab) acquireAs(ctx context.Context, name, token string) quorum.Outcome {
	return l.Acquire(ctx, quorum.Claim{
		Name: name, Token: token, TTL: ttl, Until: time.Now().Add(2 * timeout)})
}

// won makes one attempt that has to win. Voters are those too that answered in the same instant.
func (l *lab) won(name string) quorum.Outcome {
	l.t.Helper()
	out := l.acquire(name)
	if out.Verdict != quorum.Won {
		l.t.Fatalf("acquire %q: %v %v, want won", name, out.Verdict, out.Errs)
	}
	synctest.Wait()
	var mu sync.Mutex // more news may come after this has returned
	var late quorum.News
	out.OnLate(func(news quorum.News) {
		mu.Lock()
		defer mu.Unlock()
		late.Granted, late.Sure = late.Granted|news.Granted, late.Sure|news.Sure
	})
	mu.Lock()
	defer mu.Unlock()
	out.Voters, out.Unsure = out.Voters|late.Granted, out.Unsure&^late.Sure
	return out
}

// hold is a won lock.
func hold(name string, out quorum.Outcome) quorum.Hold {
	return quorum.Hold{Name: name, Token: out.Token, TTL: ttl,
		Touched: out.Touched, Unsure: out.Unsure, Voters: out.Voters}
}

// release frees and waits until that is decided.
func (l *lab) release(h quorum.Hold) quorum.Freeing {
	freed := make(chan quorum.Freeing, 1)
	l.Release(h, nil, func(f quorum.Freeing) { freed <- f })
	return <-freed
}

// extend prolongs and waits until that is decided and all have answered.
func (l *lab) extend(h quorum.Hold) (quorum.Extension, quorum.Set) {
	decided := make(chan quorum.Extension, 1)
	complete := make(chan quorum.Set, 1)
	l.Extend(h, ttl, false, func(x quorum.Extension) { decided <- x },
		func(missing quorum.Set) { complete <- missing })
	return <-decided, <-complete
}

// keyOn reports whether node i has the key.
func (l *lab) keyOn(i int, name string) bool {
	_, ok := l.nodes[i].Get(name)
	return ok
}

// wantKeys checks which nodes have the key.
func (l *lab) wantKeys(name, when string, want ...bool) {
	l.t.Helper()
	for i := range l.nodes {
		if got := l.keyOn(i, name); got != want[i] {
			l.t.Errorf("%s: key %q on node %d: %v, want %v", when, name, i, got, want[i])
		}
	}
}

// all is the set of n nodes.
func all(n int) quorum.Set { return 1<<n - 1 }

func TestAcquireDecidesWithoutTheSlowMinority(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		for _, i := range []int{1, 3} {
			l.nodes[i].Faults().Partition(true)
		}
		began := time.Now()
		out := l.won("a")
		if took := time.Since(began); took != 0 {
			t.Errorf("won after %v, want at once: the majority answered", took)
		}
		if out.Votes != 3 || out.Touched != all(5) || out.Unsure != 1<<1|1<<3 {
			t.Errorf("votes %d, touched %b, unsure %b, want 3, all, the two silent ones",
				out.Votes, out.Touched, out.Unsure)
		}
	})
}

func TestAcquireHeld(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		first := l.won("a")
		time.Sleep(time.Second)
		out := l.acquire("a")
		if out.Verdict != quorum.Held || out.Holder != first.Token {
			t.Errorf("%v by %q, want held by %q", out.Verdict, out.Holder, first.Token)
		}
		if out.Remaining != ttl-time.Second {
			t.Errorf("remaining %v, want %v", out.Remaining, ttl-time.Second)
		}
	})
}

// TestCancelledAcquireLeavesNothing is redisson/redisson 4456: an acquisition that was interrupted
// half-way left keys.
func TestCancelledAcquireLeavesNothing(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		for _, i := range []int{0, 1, 2} {
			l.nodes[i].Faults().DelayRequests(fakenode.Fixed(timeout / 2))
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout/4)
		defer cancel()
		began := time.Now()
		out := l.acquireAs(ctx, "a", quorum.NewToken("lab"))
		if took := time.Since(began); took != timeout/4 || out.Err != context.DeadlineExceeded {
			t.Errorf("returned after %v with %v, want at the context's end with its error",
				took, out.Err)
		}
		time.Sleep(3 * timeout)
		l.wantKeys("a", "long before the TTL", false, false, false, false, false)
	})
}

func TestExtendCountsOnlyVotersThatStillHaveTheKey(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		l.nodes[0].Delete("a")
		x, missing := l.extend(hold("a", out))
		if x.Verdict != quorum.HoldKept || x.Tally.Ours != 2 || missing != 1 {
			t.Errorf("verdict %v, ours %d, missing %b, want kept by 2 with the first missing",
				x.Verdict, x.Tally.Ours, missing)
		}
		l.nodes[1].Delete("a")
		x, _ = l.extend(hold("a", out))
		if x.Verdict != quorum.HoldGone {
			t.Errorf("two of three keys gone: verdict %v, want gone", x.Verdict)
		}
	})
}

func TestExtendNeverTouchesARivalsKey(t *testing.T) {
	// sibson/redbeat 127: a lease was prolonged without an owner check.
	inBubble(t, 5, func(l *lab) {
		out := l.won("a")
		for i := range 3 {
			l.nodes[i].Set("a", "ql1:rival/x", time.Minute)
		}
		time.Sleep(time.Second)
		x, _ := l.extend(hold("a", out))
		if x.Verdict != quorum.HoldGone || x.Holder != "ql1:rival/x" {
			t.Errorf("verdict %v, holder %q, want gone, the rival", x.Verdict, x.Holder)
		}
		for i := range 3 {
			if left := l.nodes[i].TTL("a"); left != 59*time.Second {
				t.Errorf("node %d: the rival's key lives for %v, want the 59 s it had", i, left)
			}
		}
	})
}

// TestExtendNeverShortens is P4 of the protocol review.
func TestExtendNeverShortens(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		done := make(chan struct{})
		l.Extend(hold("a", out), time.Second, false, func(quorum.Extension) {},
			func(quorum.Set) { close(done) })
		<-done
		for i := range l.nodes {
			if left := l.nodes[i].TTL("a"); left != ttl {
				t.Errorf("node %d: the key lives for %v, want still %v", i, left, ttl)
			}
		}
	})
}

func TestPlantHealsAndOnlyThenCounts(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		synctest.Wait()
		h := hold("a", out)
		l.nodes[2].Delete("a")
		grown := make(chan quorum.News, 3)
		planted := l.Plant(h, ttl, out.Fencing, 1<<2, func(news quorum.News) { grown <- news })
		if planted != 1<<2 {
			t.Errorf("planted %b, want the third", planted)
		}
		if news := <-grown; news != (quorum.News{Granted: 1 << 2, Sure: 1 << 2, Landed: 1 << 2}) {
			t.Errorf("heard %+v, want that node 2 has it for sure", news)
		}
		l.wantKeys("a", "after the plant", true, true, true)
		if register, _ := l.nodes[2].HGet("ql:h:a", "token"); register <= "0" {
			t.Errorf("the planted node's register is %q, want the lock's token or more", register)
		}
	})
}

func TestReleaseLeavesRivalsAlone(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		l.nodes[0].Set("a", "ql1:rival/x", time.Minute)
		if f := l.release(hold("a", out)); f.Tally.Ours+f.Tally.Nobody < 2 {
			t.Errorf("release: %+v, want two freed", f.Tally)
		}
		synctest.Wait()
		l.wantKeys("a", "after the release", true, false, false)
	})
}

// TestTokensGrow is F1 of the protocol review: a register that is only the larger of two numbers
// gives one token twice.
func TestTokensGrow(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		var last uint64
		for i := range 20 {
			// In one instant the proposals are equal but for the engine's own counter; another
			// client's could be equal altogether.
			out := l.won("a")
			if out.Fencing <= last {
				t.Fatalf("hold %d has token %d, after %d", i, out.Fencing, last)
			}
			last = out.Fencing
			l.release(hold("a", out))
			synctest.Wait()
		}
	})
}

// TestRaise: nodes that answer with different numbers are lifted to the largest, on a majority.
func TestRaise(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		ahead := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
		l.nodes[0].SetHash("ql:h:a", map[string]string{"token": ahead}, time.Hour)
		l.nodes[2].Faults().Partition(true)
		out := l.won("a")
		if got := fmt.Sprint(out.Fencing); got <= ahead {
			t.Errorf("token %s, want one above the largest register, %s", got, ahead)
		}
		for i := range 2 {
			if got, _ := l.nodes[i].HGet("ql:h:a", "token"); got != fmt.Sprint(out.Fencing) {
				t.Errorf("register of node %d is %s, want the token %d", i, got, out.Fencing)
			}
		}
		if got := l.Counters().Raises.Load(); got != 1 {
			t.Errorf("%d raises, want 1", got)
		}
	})
}

// TestRaiseNeedsAMajority: without one the attempt has failed, and leaves nothing.
func TestRaiseNeedsAMajority(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		ahead := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
		l.nodes[0].SetHash("ql:h:a", map[string]string{"token": ahead}, time.Hour)
		l.nodes[2].Faults().Partition(true)
		l.nodes[1].Refuse("ERR no", "raise")
		if out := l.acquire("a"); out.Verdict != quorum.NoQuorum || out.Fencing != 0 {
			t.Errorf("%v, token %d, want no quorum", out.Verdict, out.Fencing)
		}
		synctest.Wait()
		l.wantKeys("a", "afterwards", false, false, false)
	})
}

func TestStopEndsAttempts(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		for _, n := range l.nodes {
			n.Faults().Partition(true)
		}
		time.AfterFunc(timeout/10, l.Stop)
		began := time.Now()
		out := l.acquire("a")
		if took := time.Since(began); out.Err != quorum.ErrStopped || took != timeout/10 {
			t.Errorf("%v after %v, want ErrStopped at once", out.Err, took)
		}
	})
}

// What is taken back from a node without a vote is taken back there and nowhere else.
func TestReleaseOfOneNodeLeavesTheOthersAlone(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		out := l.won("k")
		synctest.Wait()
		h := hold("k", out)
		h.Touched, h.Unsure = 1, 1<<1|1<<2 // unsure: as of nodes that answered late
		l.Release(h, nil, nil)
		time.Sleep(5 * time.Second)
		for i, n := range l.nodes {
			if _, there := n.Get("k"); there != (i > 0) {
				t.Errorf("node %d has the key: %v, want %v", i+1, there, i > 0)
			}
		}
	})
}
