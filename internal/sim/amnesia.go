package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// Schedules with amnesia: nodes lose their memory by restart, snapshot, FLUSHALL, fail-over and
// fail-back, and their clocks are stepped, at any moment, any number of them; clients differ in
// their MaxTTL. What keeps two from holding one lock is the clients' own guard.
//
// Limits, which are those of the guarantee: every client has spoken to every node before the first
// clock is stepped (P8), no two steps are alike (a majority's would be taken for our own clock's),
// and every client's MaxTTL is known to all nodes before (P6).

// maxTTL is of a client: all alike without amnesia.
func (w *world) maxTTL(client string) time.Duration {
	if !w.Amnesia {
		return w.TTL
	}
	return w.TTL * time.Duration(1+len(client)%2+int(client[len(client)-1])%3)
}

// meet lets every client and every node speak to each other.
func (w *world) meet() error {
	for range 2 { // the second time with the largest MaxTTL of all
		for _, c := range w.clients {
			l, err := c.TryLock(context.Background(), "meeting")
			if err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
			if err := l.Unlock(context.Background()); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// amnesia does something to node i's memory, or to its clock.
func (v *weather) amnesia(i int) string {
	if v.twins == nil {
		v.twins = make([]*fakenode.Node, len(v.nodes))
		v.step = 2 * v.TTL
	}
	n := v.nodes[i]
	v.counts.Forgets.Add(1)
	switch v.rand.IntN(6) {
	case 0, 1:
		n.Forget()
		return n.Name() + " forgets"
	case 2:
		for _, key := range n.Keys() {
			n.Delete(key.Name)
		}
		return n.Name() + " is flushed"
	case 3:
		v.twins[i] = fakenode.New(fmt.Sprintf("twin-%v-%s", time.Since(v.watch.began), n.Name()))
		v.twins[i].Demote(n)
		return n.Name() + " gets a replica"
	case 4:
		if v.twins[i] == nil {
			return n.Name() + " has no replica"
		}
		v.twins[i].Promote()
		n.Demote(v.twins[i])
		n.Promote()
		return n.Name() + " fails over and back"
	default:
		v.step += v.step / 2 // not like any before
		n.StepClock(v.step)
		return fmt.Sprintf("%s's clock steps by %v", n.Name(), v.step)
	}
}

// afterAmnesia is how long a node may give no vote after the weather is over.
func (w *world) afterAmnesia() time.Duration {
	if !w.Amnesia {
		return 0
	}
	return 12*w.TTL + time.Minute
}
