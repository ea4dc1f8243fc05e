package fakenode_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// An ear writes down what it hears, and when.
type ear struct {
	quorum.Listener
	start time.Time
	mu    sync.Mutex
	notes []string
}

func listen(node quorum.Node) *ear {
	e := &ear{start: time.Now()}
	e.Listener = node.Listen(func(h quorum.Heard) {
		e.mu.Lock()
		defer e.mu.Unlock()
		what := [...]string{"subscribed", "published", "broken", "counted"}[h.Kind]
		note := fmt.Sprintf("%v %s %s %s", time.Since(e.start), what, h.Channel, h.Payload)
		e.notes = append(e.notes, strings.TrimSpace(note))
	})
	return e
}

// wants wants just this to have been heard since it was last asked.
func (e *ear) wants(t *testing.T, want ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if got := strings.Join(e.notes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("heard:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	e.notes = nil
}

// frees takes the lock and gives it back.
func (b *bench) frees() {
	b.Helper()
	if got, err := b.ask(b.Node, acquire(mine), release(mine)); got != "++" || err != nil {
		b.Fatalf("got %q, %v", got, err)
	}
}

func TestListenersHearWithDelay(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(2 * time.Millisecond))
		b.Faults().DelayReplies(fakenode.Fixed(3 * time.Millisecond))
		e := listen(b.Node)
		e.Subscribe(keys.Channel)
		pass(5 * time.Millisecond)
		e.wants(b.T, "5ms subscribed ql:free:job")
		b.frees()
		pass(0)
		e.wants(b.T, "10ms published ql:free:job "+mine)
		e.Close()
		b.frees()
		pass(time.Second)
		e.wants(b.T)
	})
}

func TestAListenerHearsInOrder(t *testing.T) {
	inBubble(t, func(b *bench) {
		e := listen(b.Node)
		e.Subscribe(keys.Channel)
		pass(0)
		// Each message is faster than the one before it, and still comes after it.
		takes := 60 * time.Millisecond
		b.Faults().DelayReplies(func() time.Duration { takes -= 10 * time.Millisecond; return takes })
		for _, token := range []string{"ql1:me/1", "ql1:me/2"} {
			batch := batchOf(acquire(token), release(token))
			go func() { _ = b.Exec(b.Context(), batch) }()
			pass(0)
		}
		pass(time.Second)
		e.wants(b.T, "0s subscribed ql:free:job",
			"50ms published ql:free:job ql1:me/1", "50ms published ql:free:job ql1:me/2")
	})
}

func TestBrokenListenersSubscribeAgain(t *testing.T) {
	inBubble(t, func(b *bench) {
		e := listen(b.Node)
		e.Subscribe("z")
		e.Subscribe("a")
		e.Subscribe("gone")
		e.Unsubscribe("gone")
		pass(time.Second)
		e.wants(b.T, "0s subscribed z", "0s subscribed a", "0s subscribed gone")
		for _, act := range []func(){b.BreakListeners, b.Restart, b.Forget} {
			e.start = time.Now()
			act()
			pass(time.Second)
			e.wants(b.T, "0s broken", "0s subscribed a", "0s subscribed z")
		}
		if got := fmt.Sprint(b.Listeners()); got != "map[a:1 z:1]" {
			b.Errorf("subscriptions: got %s", got)
		}
		e.Close()
		if got := b.Listeners(); len(got) != 0 {
			b.Errorf("subscriptions: got %v, want none", got)
		}
	})
}

func TestListenersWaitForANodeThatIsDown(t *testing.T) {
	inBubble(t, func(b *bench) {
		e := listen(b.Node)
		e.Subscribe("a")
		pass(time.Second)
		b.Faults().Down(true)
		e.Subscribe("b")
		late := listen(b.Node)
		late.Subscribe("a")
		pass(time.Second)
		e.wants(b.T, "0s subscribed a", "1s broken")
		late.wants(b.T)
		b.Faults().Down(false)
		pass(0)
		e.wants(b.T, "2s subscribed a", "2s subscribed b")
		late.wants(b.T, "1s subscribed a")
	})
}

func TestListenersOfAPausedNodeHearWhenItGoesOn(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Pause()
		e := listen(b.Node)
		e.Subscribe("a")
		pass(time.Second)
		e.wants(b.T)
		b.Resume()
		pass(0)
		e.wants(b.T, "1s subscribed a")
	})
}

func TestAPublishedMessageCanGetLost(t *testing.T) {
	inBubble(t, func(b *bench) {
		e := listen(b.Node)
		e.Subscribe(keys.Channel)
		pass(0)
		b.Faults().LosePublished(fakenode.Next(1))
		b.frees()
		b.frees()
		pass(time.Second)
		e.wants(b.T, "0s subscribed ql:free:job", "0s published ql:free:job "+mine)
	})
}

func TestAPartitionIsNotNoticedUntilItHeals(t *testing.T) {
	inBubble(t, func(b *bench) {
		link := b.Link()
		e := listen(link)
		e.Subscribe(keys.Channel)
		pass(0)
		link.Faults().Partition(true)
		if got, err := b.ask(link, acquire(mine)); got != "" || err == nil {
			b.Errorf("got %q, %v; want no answer", got, err)
		}
		b.frees()
		e.Subscribe("more")
		pass(0)
		e.wants(b.T, "0s subscribed ql:free:job")
		link.Faults().Partition(false)
		pass(0)
		e.wants(b.T, "1s broken", "1s subscribed more", "1s subscribed ql:free:job")
		if got, err := b.ask(link, acquire(mine)); got != "+" || err != nil {
			b.Errorf("got %q, %v", got, err)
		}
	})
}

func TestAClosedLinkHearsNothing(t *testing.T) {
	inBubble(t, func(b *bench) {
		link := b.Link()
		e, other := listen(link), listen(b.Node)
		e.Subscribe(keys.Channel)
		other.Subscribe(keys.Channel)
		pass(0)
		_ = link.Close()
		b.frees()
		pass(0)
		e.wants(b.T, "0s subscribed ql:free:job")
		other.wants(b.T, "0s subscribed ql:free:job", "0s published ql:free:job "+mine)
		after := listen(link)
		after.Subscribe("a")
		pass(time.Second)
		after.wants(b.T)
	})
}
