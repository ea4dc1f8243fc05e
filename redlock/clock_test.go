package redlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// Clocks that lie: those of nodes, and our own.

// wantNoAlarm wants nobody's clock to have been found stepped.
func (r *rig) wantNoAlarm(p *process) {
	r.Helper()
	for _, words := range []string{"stepped", "stood still"} {
		if strings.Contains(p.log.String(), words) {
			r.Errorf("a false alarm:\n%s", p.log)
		}
	}
}

// lacks is how many nodes give the process no vote at present.
func (r *rig) lacks(p *process) (n int) {
	for _, status := range p.Nodes(r.Context()) {
		if status.Err != nil {
			n++
		}
	}
	return n
}

func TestClockSlewIsNoStep(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		r.old()
		for i, n := range r.nodes {
			n.StepClock(time.Duration(i-2) * 17 * time.Minute) // wrong from the start
			n.Faults().DelayRequests(fakenode.Jitter(uint64(i), 0, 2*time.Millisecond))
			n.Faults().DelayReplies(fakenode.Jitter(uint64(i), 0, 2*time.Millisecond))
		}
		a := r.process(redlock.Config{})
		rates := []float64{500e-6, -500e-6, 0, 500e-6, -300e-6}
		for i := range 24 * 6 { // a day; looked at every ten minutes, and now and then at once again
			for j, n := range r.nodes {
				n.Drift(rates[(i/36+j)%5])
			}
			for range 1 + i%3 {
				l := r.take(&a.user, "k")
				r.wantIs(l.Unlock(r.Context()))
			}
			time.Sleep(10 * time.Minute)
		}
		r.wantNoAlarm(a)
		if n := r.lacks(a); n != 0 {
			r.Errorf("%d nodes give no vote, want all to", n)
		}
	})
}

func TestClockSlowRepliesAreNoStep(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		r.old()
		a := r.process(redlock.Config{})
		r.warm(&a.user)
		for i, n := range r.nodes {
			n.Faults().DelayRequests(fakenode.Jitter(uint64(i), 0, 124*time.Millisecond))
			n.Faults().DelayReplies(fakenode.Jitter(uint64(i)+9, 0, 124*time.Millisecond))
		}
		for i := range 300 {
			l, err := a.Lock(r.within(10*time.Second), "k")
			if err != nil {
				r.Fatal(err)
			}
			r.wantIs(l.Unlock(r.Context()))
			if i%10 == 0 {
				freeze(100*time.Millisecond, r.nodes[i/10%5])
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
		r.wantNoAlarm(a)
	})
}

// One and two of five nodes, an hour ahead or behind, while locks are held.
func TestClockSteppedMinority(t *testing.T) {
	t.Parallel()
	for count := 1; count <= 2; count++ {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			t.Run(fmt.Sprintf("nodes=%d/step=%v", count, step), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) {
					r.old()
					a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
					r.warm(&a.user)
					r.warm(&b.user)
					la := r.take(&a.user, "k")
					for _, n := range r.nodes[:count] {
						n.StepClock(step)
					}
					stepped := time.Now()
					rival := func(p *process, d time.Duration) {
						for began := time.Now(); time.Since(began) < d; {
							lb, err := p.TryLock(r.Context(), "k")
							r.wantOne(la, lb)
							if err == nil {
								r.Fatalf("got the lock %v after the step", time.Since(stepped))
							}
							time.Sleep(50 * time.Millisecond)
						}
					}
					rival(b, 2*time.Second)
					c := r.process(redlock.Config{}) // never saw the clocks before
					if n := r.lacks(c); n != count {
						r.Errorf("a new process gets no vote of %d nodes, want %d", n, count)
					}
					rival(c, 5*time.Second)
					for i, n := range c.Nodes(r.Context())[:count] {
						if left := n.VotesFrom.Sub(r.nodes[i].Now()); left <= 0 || left > 10*time.Second {
							r.Errorf("node %d votes in %v, want some of MaxTTL", i+1, left)
						}
					}
					time.Sleep(time.Until(stepped.Add(10200 * time.Millisecond)))
					for i, p := range []*process{a, b, c} {
						if i > 0 && r.lacks(p) != 0 {
							r.Errorf("%d nodes give no vote after MaxTTL, want all to", r.lacks(p))
						}
						if strings.Contains(p.log.String(), "stood still") {
							r.Errorf("charged to the process itself:\n%s", p.log)
						}
					}
					rival(b, time.Second)
					r.wantHeld(la)
					r.wantIs(la.Unlock(r.Context()))
					time.Sleep(time.Second)
					lb, err := b.TryLock(r.Context(), "k")
					r.wantIs(err)
					if lb.Token() <= la.Token() {
						r.Errorf("token %d after %d", lb.Token(), la.Token())
					}
				})
			})
		}
	}
}

// Three of five: nobody can tell whose clock it was, so the holder takes it for its own.
func TestClockSteppedMajority(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				r.old()
				a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
				r.warm(&a.user)
				r.warm(&b.user)
				la := r.take(&a.user, "k")
				for _, n := range r.nodes[:3] {
					n.StepClock(step)
				}
				time.Sleep(3400 * time.Millisecond) // TTL/3: a renewal
				if step > 0 {
					r.wantLost(la)
				} else {
					r.wantHeld(la) // keys that live too long hurt nobody
					r.wantIs(la.Unlock(r.Context()))
				}
				lb, err := b.Lock(r.within(time.Minute), "k")
				r.wantIs(err)
				if lb.Token() <= la.Token() {
					r.Errorf("token %d after %d", lb.Token(), la.Token())
				}
				r.wantOne(la, lb)
			})
		})
	}
}

// Steps that were long ago, or of nodes that are not known to have stepped, are no company for a
// new one.
func TestClockStepsAreOursOnlyTogether(t *testing.T) {
	t.Parallel()
	t.Run("three nodes, one after another", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{})
			la := r.take(&a.user, "k")
			for _, n := range r.nodes[:4] {
				n.StepClock(time.Hour)
				time.Sleep(time.Minute)
			}
			r.wantHeld(la)
			if strings.Contains(a.log.String(), "stood still") {
				r.Errorf("charged to the process itself:\n%s", a.log)
			}
		})
	})
	t.Run("the only node that was ever met", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			a, b := r.process(redlock.Config{TTL: time.Minute}), r.process(redlock.Config{TTL: time.Minute})
			a.cut(true, 2)
			la := r.take(&a.user, "k", redlock.WithoutRenewal()) // nodes 1 and 2
			b.cut(true, 1, 2)
			r.wantIs(r.try(&b.user, "other"), redlock.ErrNoQuorum) // meets node 1 and no other
			r.nodes[0].StepClock(time.Hour)
			b.Nodes(r.Context())
			time.Sleep(time.Second)
			b.cut(false, 2)
			time.Sleep(time.Second)
			lb, err := b.TryLock(r.Context(), "k")
			r.wantOne(la, lb)
			if err == nil {
				r.Error("got the lock with the vote of a node whose clock had stepped")
			}
		})
	})
	t.Run("a node on the same machine", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			a, b := r.process(redlock.Config{TTL: time.Minute}), r.process(redlock.Config{TTL: time.Minute})
			r.warm(&b.user)
			a.cut(true, 2)
			la := r.take(&a.user, "k", redlock.WithoutRenewal()) // nodes 1 and 2
			b.cut(true, 0)
			r.nodes[1].StepClock(time.Hour) // B runs on the machine of node 2
			b.machine.step(time.Hour)
			lb, err := b.TryLock(r.Context(), "k")
			r.wantOne(la, lb)
			if err == nil {
				r.Error("got the lock with the vote of a node whose clock had stepped")
			}
			time.Sleep(time.Second)
			_, err = b.TryLock(r.Context(), "k")
			if err == nil {
				r.Error("got the lock with the vote of a node whose clock had stepped")
			}
		})
	})
}

// P7: keys that move to another machine are judged by its clock.
func TestP7KeysMoveBetweenClocks(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
		r.warm(&a.user)
		r.warm(&b.user)
		r.take(&a.user, "k", redlock.WithoutRenewal())
		a.cut(true, 0, 1, 2)            // dies
		for _, n := range r.nodes[:2] { // restarted on machines whose clocks are behind
			kept := n.Snapshot()
			n.StepClock(-30 * time.Second)
			n.RestartFromSnapshot(kept)
		}
		began := time.Now()
		lb, err := b.Lock(r.within(2*time.Minute), "k")
		r.wantIs(err)
		// Not detected: that the keys live longer there. It only makes others wait.
		r.wantTook(began, 39*time.Second, 45*time.Second)
		r.wantHeld(lb)
		// Detected, as B knew the nodes: that their clocks are not what they were.
		if !strings.Contains(b.log.String(), "stepped\" by=-30s") {
			r.Errorf("B was not told:\n%s", b.log)
		}
	})
}

// P8: a step is seen by a client that knew the node before, and by no other.
func TestP8AStepNobodySaw(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, known bool) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			cfg := redlock.Config{TTL: time.Minute}
			a, b := r.process(cfg), r.process(cfg)
			a.cut(true, 2)
			la := r.take(&a.user, "k", redlock.WithoutRenewal())
			if known {
				b.Nodes(r.Context())
			}
			b.cut(true, 0)
			r.nodes[1].StepClock(time.Hour)
			lb, err := b.TryLock(r.Context(), "k")
			if known {
				r.wantOne(la, lb)
				r.wantNoVote(err)
				c := r.process(cfg) // and by way of the node the others learn of it
				c.cut(true, 0)
				time.Sleep(time.Second)
				r.wantNoVote(r.try(&c.user, "k"))
				return
			}
			// The documented limit: both hold. The fencing token still tells them apart.
			r.wantIs(err)
			if lb.Token() <= la.Token() {
				r.Errorf("token %d after %d", lb.Token(), la.Token())
			}
			// A, which knew the node, is told when it speaks to it: at its next renewal.
			_ = la.Extend(r.Context())
			time.Sleep(time.Second)
			if !strings.Contains(a.log.String(), "stepped") {
				r.Errorf("A was not told:\n%s", a.log)
			}
		})
	}
	t.Run("not detected: a new process", func(t *testing.T) { run(t, false) })
	t.Run("detected: a process that knew the node", func(t *testing.T) { run(t, true) })
}

// P9: on a machine that was suspended, all nodes seem to have stepped.
func TestP9SuspendedMachine(t *testing.T) {
	t.Parallel()
	for _, wallKnows := range []bool{false, true} {
		for _, missed := range []time.Duration{time.Second, 3 * time.Second, 15 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("wallKnows=%v/missed=%v", wallKnows, missed), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 5, func(r *rig) {
					r.old()
					a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
					r.warm(&a.user)
					r.warm(&b.user)
					la := r.take(&a.user, "k", redlock.WithoutRenewal())
					until := time.Now().Add(10 * time.Second) // the keys'
					a.sleep(missed, wallKnows)
					if wallKnows {
						if left := la.Remaining(); left > time.Until(until) {
							r.Errorf("%v remaining at the first look, the keys have %v", left, time.Until(until))
						}
					}
					time.Sleep(600 * time.Millisecond) // the connections are made anew
					r.wantNoAlarm(b)
					_ = r.try(&a.user, "other") // speaks to the nodes
					time.Sleep(100 * time.Millisecond)
					if left := la.Remaining(); left > max(time.Until(until), 0) {
						r.Errorf("%v remaining, the keys have %v", left, time.Until(until))
					} else if want := time.Until(until) - 102*time.Millisecond; want > 0 && left < want-10*time.Millisecond {
						r.Errorf("%v remaining, want about %v: a step that both clocks know was charged twice", left, want)
					}
					// Nobody lost a vote by it.
					for i, p := range []*process{a, b, r.process(redlock.Config{})} {
						if n := r.lacks(p); n != 0 {
							r.Errorf("process %d: %d nodes give no vote, want all to:\n%s", i, n, p.log)
						}
					}
					l := r.take(&b.user, "b")
					r.wantIs(l.Unlock(r.Context()))
					l = r.take(&a.user, "a")
					r.wantIs(l.Unlock(r.Context()))
				})
			})
		}
	}
	t.Run("the connections come back one by one", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
			r.warm(&a.user)
			r.warm(&b.user)
			a.machine.suspend()
			a.cut(true, 0, 1, 2, 3, 4)
			time.Sleep(time.Hour)
			a.machine.wake(false)
			go func() { // its user
				for range 50 {
					_ = r.try(&a.user, "other")
					time.Sleep(100 * time.Millisecond)
				}
			}()
			for i := range 5 {
				time.Sleep(400 * time.Millisecond)
				a.cut(false, i)
				if n := r.lacks(b) + r.lacks(r.process(redlock.Config{})); n != 0 {
					r.Errorf("with %d connections back: %d nodes give no vote, want all to", i, n)
				}
			}
			time.Sleep(10 * time.Second)
			if n := r.lacks(a) + r.lacks(b); n != 0 {
				r.Errorf("%d nodes give no vote, want all to:\n%s", n, a.log)
			}
			if n := strings.Count(a.log.String(), "stood still"); n != 1 {
				r.Errorf("told %d times that the clocks stood still, want once:\n%s", n, a.log)
			}
		})
	})
	t.Run("a round that began before is not used", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{NodeTimeout: 2500 * time.Millisecond})
			r.warm(&a.user)
			la := r.take(&a.user, "k", redlock.WithoutRenewal())
			before := la.Remaining()
			a.machine.suspend()
			for i := range a.links {
				a.links[i].Faults().DelayReplies(fakenode.Fixed(2 * time.Second))
			}
			result := make(chan error, 1)
			go func() { result <- la.Extend(r.Context()) }()
			synctest.Wait()
			for i := range a.links {
				a.links[i].Faults().Clear()
			}
			time.Sleep(1500 * time.Millisecond)
			a.machine.wake(false)
			_ = r.try(&a.user, "other")
			synctest.Wait()
			if !strings.Contains(a.log.String(), "stood still") {
				r.Fatalf("the suspension was not seen:\n%s", a.log)
			}
			r.wantIs(<-result, redlock.ErrNoQuorum)
			if left := la.Remaining(); left > before-2*time.Second {
				r.Errorf("%v remaining, had %v two seconds ago", left, before)
			}
			r.wantIs(la.Extend(r.Context()))
		})
	})
}

// P9: a marker in the node's future, which a clock that was stepped back leaves, is written anew.
func TestP9MarkerInTheFuture(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				p := r.process(redlock.Config{})
				r.wantNoVote(r.try(&p.user, "k"))
				time.Sleep(9 * time.Second)
				for _, n := range r.nodes {
					n.StepClock(-24 * time.Hour)
				}
				stepped := time.Now()
				if !known {
					p = r.process(redlock.Config{})
				}
				_, err := p.Lock(r.within(time.Hour), "k")
				r.wantIs(err)
				r.wantTook(stepped, 10*time.Second, 12*time.Second)
			})
		})
	}
}

// Two clients find one step at the same time: both say so, and the node waits once.
func TestClockStepFoundByManyAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		r.old()
		var all []*process
		for range 6 {
			p := r.process(redlock.Config{})
			r.warm(&p.user)
			all = append(all, p)
		}
		r.nodes[2].StepClock(time.Hour)
		var asked sync.WaitGroup
		for i, p := range all {
			asked.Go(func() {
				if l, err := p.TryLock(r.Context(), fmt.Sprint(i)); err == nil {
					r.wantIs(l.Unlock(r.Context()))
				}
			})
		}
		asked.Wait()
		time.Sleep(10500 * time.Millisecond)
		for i, p := range all {
			if n := r.lacks(p); n != 0 {
				r.Errorf("process %d: %d nodes give no vote after MaxTTL", i, n)
			}
			if n := strings.Count(p.log.String(), "stepped"); n != 1 {
				r.Errorf("process %d: told %d times, want once:\n%s", i, n, p.log)
			}
		}
	})
}
