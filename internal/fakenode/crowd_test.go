package fakenode_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// TestAnythingAtOnce is for the race detector: everything that a test can do, while everybody
// asks. Nothing may be left running at its end, or the bubble fails.
func TestAnythingAtOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Jitter(1, 0, 5*time.Millisecond))
		b.Faults().DelayReplies(fakenode.Jitter(2, 0, 5*time.Millisecond))
		b.Faults().LoseReplies(fakenode.Chance(3, 0.1))
		b.Faults().LoseRequests(fakenode.Chance(4, 0.1))
		b.Faults().Repeat(fakenode.Repeats(5, 0.2, 0, 20*time.Millisecond))
		other := fakenode.New("node 2")
		acts := []func(){
			b.Pause, b.Resume, b.Forget, b.Restart, b.Promote, b.BreakListeners,
			func() { b.RestartFromSnapshot(b.Snapshot()) },
			func() { b.Demote(other) },
			func() { b.Faults().Down(true) }, func() { b.Faults().Down(false) },
			func() { b.Faults().Partition(true) }, func() { b.Faults().Partition(false) },
			func() { b.StepClock(time.Second) }, func() { b.Drift(0.01) },
			func() { b.SilentFor(time.Millisecond) }, func() { b.Refuse("ERR no", "extend") },
			func() { b.Keys() }, func() { b.Set(keys.Lock, "x", ttl) }, func() { b.Counts() },
			func() { b.OnExec(func(string, []string) {}) }, func() { b.Resume() },
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				link := b.Link()
				l := link.Listen(func(quorum.Heard) {})
				l.Subscribe(keys.Channel)
				for j := range 60 {
					_, _ = b.ask(link, acquire(mine), extend(mine), release(mine))
					time.Sleep(time.Millisecond)
					acts[(i*7+j)%len(acts)]()
				}
				l.Close()
				_ = link.Close()
			})
		}
		wg.Wait()
		b.Resume()
		pass(time.Second)
	})
}

func TestTimersMayOutliveTheTest(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Faults().DelayRequests(fakenode.Fixed(time.Hour))
		b.wantsNothing(acquire(mine))
		synctest.Wait()
	})
}
