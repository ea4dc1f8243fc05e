package quorum_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// heard reports whether an ear was told of a release within d.
func heard(ear *quorum.Ear, d time.Duration) bool {
	select {
	case <-ear.Freed():
		return true
	case <-time.After(d):
		return false
	}
}

// listening is an ear that hears all nodes.
func (l *lab) listening(name string) *quorum.Ear {
	l.t.Helper()
	ear := l.Listen(name)
	<-ear.Ready()
	synctest.Wait()
	return ear
}

func TestAnEarHearsWhoseReleaseItWas(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		ear := l.listening("k")
		defer ear.Close()
		for _, token := range []string{quorum.NewRankedToken("a", 3), quorum.NewToken("b")} {
			out := l.acquireAs(l.t.Context(), "k", token)
			ear.Await(token)
			l.release(hold("k", out))
			if !heard(ear, time.Second) {
				t.Fatalf("the release of %q is not heard", token)
			}
			if ear.Told() != token {
				t.Errorf("told of %q, want %q", ear.Told(), token)
			}
			if heard(ear, time.Second) {
				t.Errorf("told twice of %q", token)
			}
		}
	})
}

// Of the holder's release one node is enough, a moment later; of somebody else's it is not.
func TestAnEarIsContentWithOneNodeOfTheHoldersRelease(t *testing.T) {
	for _, c := range []struct {
		name  string
		await bool
	}{{"the holder's", true}, {"another's", false}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 5, func(l *lab) {
				ear := l.listening("k")
				defer ear.Close()
				out := l.won("k")
				if c.await {
					ear.Await(out.Token)
				}
				for _, n := range l.nodes[1:] {
					n.Faults().LosePublished(func() bool { return true })
				}
				l.release(hold("k", out))
				if got := heard(ear, time.Second); got != c.await {
					t.Errorf("heard: %v, want %v", got, c.await)
				}
			})
		})
	}
}

// What is known of a name stays for a moment after the wait, for the next one, and no longer.
func TestAnEarIsRememberedForAMoment(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		if ear := l.Overhear("k"); ear != nil {
			t.Error("overheard what nobody listened for")
		}
		ear := l.listening("k")
		if ear.Crowd() != 1 || ear.Had() {
			t.Errorf("a crowd of %d, had: %v; want itself alone, that has not had it", ear.Crowd(), ear.Had())
		}
		ear.Keep()
		other := l.nodes[0].Listen(func(quorum.Heard) {})
		defer other.Close()
		for _, n := range l.nodes[1:] {
			o := n.Listen(func(quorum.Heard) {})
			defer o.Close()
			o.Subscribe("ql:free:k")
		}
		other.Subscribe("ql:free:k")
		synctest.Wait()
		ear.Recount() // it was counted just now
		synctest.Wait()
		if ear.Crowd() != 1 {
			t.Errorf("a crowd of %d, want what was counted just now", ear.Crowd())
		}
		time.Sleep(200 * time.Millisecond)
		ear.Recount()
		synctest.Wait()
		if ear.Crowd() != 2 {
			t.Errorf("a crowd of %d, want 2", ear.Crowd())
		}
		ear.Close()
		ear.Recount() // of a closed one: nothing
		again := l.Overhear("k")
		if again == nil {
			t.Fatal("forgotten at once")
		}
		if again.Crowd() != 2 || !again.Had() {
			t.Errorf("a crowd of %d, had: %v; want what was kept", again.Crowd(), again.Had())
		}
		again.Close()
		time.Sleep(3 * time.Second)
		if l.Overhear("k") != nil {
			t.Error("still remembered after 3 s")
		}
	})
}

// A lateNode confirms subscriptions when the test lets it.
type lateNode struct {
	quorum.Node
	tell []func(quorum.Heard)
}

func (n *lateNode) Listen(tell func(quorum.Heard)) quorum.Listener {
	n.tell = append(n.tell, tell)
	return deafListener{}
}

type deafListener struct{}

func (deafListener) Subscribe(string)   {}
func (deafListener) Unsubscribe(string) {}
func (deafListener) Count(string)       {}
func (deafListener) Close()             {}

// Messages that were on their way when their listener was closed say nothing: neither to an engine
// that is closed, nor to an ear that listens anew.
func TestLateMessagesOfClosedListenersCountForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t}
		var nodes []quorum.Node
		var late []*lateNode
		for i := range 3 {
			n := &lateNode{Node: fakenode.New(fmt.Sprintf("n%d", i+1))}
			nodes, late = append(nodes, n), append(late, n)
			l.nodes = append(l.nodes, n.Node.(*fakenode.Node))
		}
		l.start(nodes)
		subscribed := quorum.Heard{Kind: quorum.Subscribed, Channel: "ql:free:k"}
		isReady := func(ear *quorum.Ear) bool {
			select {
			case <-ear.Ready():
				return true
			default:
				return false
			}
		}

		l.Listen("k").Close()
		time.Sleep(3 * time.Second) // the listeners are closed
		ear := l.Listen("k")
		for _, n := range late {
			n.tell[0](subscribed)
		}
		if isReady(ear) {
			t.Error("ready by what closed listeners had heard")
		}
		for _, n := range late[:2] {
			n.tell[1](subscribed)
		}
		if !isReady(ear) {
			t.Error("not ready, and a majority listens")
		}
		ear.Close()

		other := l.Listen("other")
		l.stop()
		for _, n := range late {
			n.tell[1](quorum.Heard{Kind: quorum.Subscribed, Channel: "ql:free:other"})
		}
		if isReady(other) {
			t.Error("ready, and the engine is closed")
		}
	})
}

func TestLookAsksOneNodeThatAnswers(t *testing.T) {
	inBubble(t, 5, func(l *lab) {
		out := l.won("k")
		seen := l.Look(l.t.Context(), "k")
		if seen.Err != nil || seen.Holder != out.Token || seen.Left <= 0 {
			t.Errorf("saw %+v, want %q", seen, out.Token)
		}
		asked := 0
		for i := range l.nodes {
			asked += l.count(i, "inspect")
		}
		if asked != 1 {
			t.Errorf("%d nodes were asked, want one", asked)
		}
		if all, err := l.InspectMost(l.t.Context(), "k"); err != nil {
			t.Error(err)
		} else if holder, nodes, _ := quorum.Strongest(all); holder != out.Token || nodes < 3 {
			t.Errorf("%q at %d nodes, want %q at a majority", holder, nodes, out.Token)
		}
		l.release(hold("k", out))
		ctx, cancel := context.WithCancel(l.t.Context())
		cancel()
		if seen := l.Look(ctx, "k"); seen.Err == nil {
			t.Error("a look after the context's end has no error")
		}
		for _, n := range l.nodes {
			n.Faults().Down(true)
		}
		l.acquire("other")
		if seen := l.Look(l.t.Context(), "k"); seen.Err == nil {
			t.Error("a look where no node answers has no error")
		}
		for _, n := range l.nodes {
			n.Faults().Down(false)
		}
		time.Sleep(time.Second)
	})
}
