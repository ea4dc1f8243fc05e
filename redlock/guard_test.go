package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// The findings of the protocol review about nodes that forget, each as a scripted run; named after
// them.

// P1: a plant that was on its way comes to a node which has forgotten a rival's vote meanwhile.
func TestP1APlantOnAWaitingNode(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		cfg := redlock.Config{TTL: 8 * time.Second, NodeTimeout: 2 * time.Second}
		a, b := r.process(cfg), r.process(cfg)
		r.warm(&a.user)
		r.warm(&b.user)
		began := time.Now()
		at := func(s float64) {
			time.Sleep(time.Until(began.Add(time.Duration(s * float64(time.Second)))))
		}

		// A holds nodes 2 and 3.
		r.nodes[0].Faults().Down(true)
		la := r.take(&a.user, "k", redlock.WithoutRenewal())
		r.nodes[0].Faults().Down(false)
		a.links[0].Faults().DelayRequests(fakenode.Fixed(time.Hour)) // nothing is planted yet
		at(5)
		r.wantIs(la.Extend(r.Context()))
		synctest.Wait()

		// B's request: granted on node 1, on its way to the others.
		b.links[1].Faults().DelayRequests(fakenode.Fixed(1300 * time.Millisecond))
		b.links[2].Faults().DelayRequests(fakenode.Fixed(1300 * time.Millisecond))
		var lb *redlock.Lock
		var bErr error
		var wait sync.WaitGroup

		// A extends on node 2 only, and when it has waited for node 3, plants on node 1.
		a.links[0].Faults().Clear()
		at(10.5)
		a.cut(true, 2)
		go la.Extend(r.Context())
		at(11.9)
		a.links[0].Faults().DelayRequests(fakenode.Fixed(250 * time.Millisecond))
		at(12)
		wait.Go(func() { lb, bErr = b.TryLock(r.Context(), "k", redlock.WithoutRenewal()) })
		at(12.6)
		r.nodes[0].Forget()
		at(12.8) // the plant, sent at 12.5, has arrived
		if text, there := r.nodes[0].Get("k"); there {
			r.Errorf("a node without a memory has the key %s", text)
		}
		a.links[0].Faults().Clear()
		_ = la.Extend(r.Context()) // with node 1 this would be a majority
		wait.Wait()
		if bErr != nil {
			r.Fatalf("B, which node 1 voted for before it forgot: %v", bErr)
		}
		r.wantOne(la, lb)
		r.wantLost(la)
	})
}

// P1 again: a node whose clock steps while it is planted sets the key and has no vote. What it says
// of the key counts for nothing, and until it has confirmed the release nothing else sets the key:
// the release would take it away from under a vote.
func TestP1APlantThatWasVoid(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		a := r.process(redlock.Config{})
		l := r.take(&a.user, "k", redlock.WithoutRenewal())
		synctest.Wait()
		n := r.nodes[2]
		n.Delete("k")
		n.Refuse("BUSY a slow script", "release")
		n.OnExec(func(script string, _ []string) {
			if script == "acquire" {
				n.OnExec(nil)
				n.StepClock(time.Hour)
			}
		})
		r.wantIs(l.Extend(r.Context()))
		synctest.Wait()
		if _, there := n.Get("k"); !there || n.Count("release") == 0 {
			t.Fatal("want the void plant's key, and a release that was refused")
		}
		plants := n.Count("acquire")
		for range 3 {
			time.Sleep(time.Second)
			r.wantIs(l.Extend(r.Context()))
			synctest.Wait()
		}
		a.cut(true, 0)
		r.wantIs(l.Extend(r.Context()), redlock.ErrNoQuorum) // one vote and a key without one
		a.cut(false, 0)
		if more := n.Count("acquire") - plants; more != 0 {
			t.Errorf("%d more plants before the release was confirmed, want none", more)
		}
		n.Refuse("")
		time.Sleep(2 * time.Second)
		if text, there := n.Get("k"); there {
			t.Errorf("the key is still there: %s", text)
		}
		for range 2 { // when the node votes again
			time.Sleep(4 * time.Second)
			r.wantIs(l.Extend(r.Context()))
			synctest.Wait()
		}
		if _, there := n.Get("k"); !there {
			t.Error("the node votes again, and was not planted")
		}
		a.cut(true, 0)
		r.wantIs(l.Extend(r.Context()))
	})
}

// P1 with P5: a key without a vote proves nothing when a handle is resumed, either.
func TestP5AKeyWithoutAVoteIsNoProof(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
		l := r.take(&a.user, "k", redlock.WithoutRenewal())
		synctest.Wait()
		n := r.nodes[2]
		n.Delete("k")
		n.Refuse("BUSY a slow script", "release")
		n.OnExec(func(script string, _ []string) {
			if script == "acquire" {
				n.OnExec(nil)
				n.StepClock(time.Hour)
			}
		})
		r.wantIs(l.Extend(r.Context()))
		synctest.Wait()
		if _, there := n.Get("k"); !there {
			t.Fatal("want the void plant's key")
		}
		handle := r.detach(l)
		b.cut(true, 0)
		_, err := b.Resume(r.Context(), handle)
		r.wantIs(err, redlock.ErrNoQuorum) // one vote and a key without one
		b.cut(false, 0)
		time.Sleep(time.Second)
		resumed, err := b.Resume(r.Context(), handle)
		r.wantIs(err)
		r.wantHeld(resumed)
		if resumed.Token() != l.Token() {
			t.Errorf("token %d, was %d", resumed.Token(), l.Token())
		}
		n.Refuse("")
		r.wantIs(resumed.Unlock(r.Context()))
		time.Sleep(2 * time.Second)
		r.wantKeys("k", 0)
	})
}

// P5: a handle is text, and two processes can read it.
func TestP5ResumeTwice(t *testing.T) {
	t.Parallel()
	t.Run("at once: one holder", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{})
			la := r.take(&a.user, "k")
			handle, err := la.Detach()
			if err != nil {
				r.Fatal(err)
			}
			for i, n := range r.nodes {
				n.Faults().DelayRequests(fakenode.Jitter(uint64(i), 0, 5*time.Millisecond))
			}
			locks := make([]*redlock.Lock, 4)
			var all sync.WaitGroup
			for i := range locks {
				p := r.process(redlock.Config{})
				all.Go(func() { locks[i], _ = p.Resume(r.Context(), handle) })
			}
			all.Wait()
			holders := 0
			for _, l := range locks {
				if l.Remaining() > 0 {
					holders++
					if l.Token() != la.Token() {
						r.Errorf("fencing token %d, want %d", l.Token(), la.Token())
					}
				}
			}
			if holders > 1 {
				r.Errorf("%d hold the lock of one handle, want at most one", holders)
			}
		})
	})
	t.Run("one after the other: the second is told", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			a, b, c := r.process(redlock.Config{}), r.process(redlock.Config{}), r.process(redlock.Config{})
			handle, err := r.take(&a.user, "k").Detach()
			if err != nil {
				r.Fatal(err)
			}
			lb, err := b.Resume(r.Context(), handle)
			r.wantIs(err)
			_, err = c.Resume(r.Context(), handle)
			r.wantIs(err, redlock.ErrLost, redlock.ErrHeld)
			time.Sleep(time.Minute)
			r.wantHeld(lb)
			_, err = a.Resume(r.Context(), handle)
			r.wantIs(err, redlock.ErrLost, redlock.ErrHeld)
			r.wantIs(lb.Unlock(r.Context()))
			_, err = c.Resume(r.Context(), handle)
			r.wantIs(err, redlock.ErrLost)
		})
	})
	t.Run("handles that are not whole", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{})
			handle, err := r.take(&a.user, "k").Detach()
			if err != nil {
				r.Fatal(err)
			}
			for cut := range len(handle) {
				_, err := a.Resume(r.Context(), handle[:cut])
				r.wantIs(err, redlock.ErrInvalid)
			}
			for i := range len(handle) {
				altered := handle[:i] + string(handle[i]^1) + handle[i+1:]
				_, err := a.Resume(r.Context(), altered)
				r.wantIs(err, redlock.ErrInvalid)
			}
			_, err = a.Resume(r.Context(), handle)
			r.wantIs(err)
		})
	})
	t.Run("a handle whose lock has ended", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{})
			handle, err := r.take(&a.user, "k").Detach()
			if err != nil {
				r.Fatal(err)
			}
			time.Sleep(11 * time.Second)
			_, err = a.Resume(r.Context(), handle)
			r.wantIs(err, redlock.ErrLost)
		})
	})
}

const (
	short = time.Minute     // one application's MaxTTL
	long  = 5 * time.Minute // another's
)

// P6: a node that forgot cannot remember the largest MaxTTL of its users; the others do.
func TestP6DifferentMaxTTL(t *testing.T) {
	t.Parallel()
	t.Run("the largest counts", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			y := r.process(redlock.Config{TTL: long, NodeTimeout: time.Second})
			r.take(&y.user, "k", redlock.WithoutRenewal())
			y.cut(true, 0, 1, 2)
			r.nodes[0].Forget()
			r.nodes[1].Forget()
			x := r.process(redlock.Config{TTL: short, NodeTimeout: time.Second})
			for range 29 {
				round := r.wantNoVote(r.try(&x.user, "k"))
				if round.Remaining <= 0 || round.Remaining > long {
					r.Errorf("remaining %v, want some of %v", round.Remaining, long)
				}
				time.Sleep(10 * time.Second)
			}
			time.Sleep(11 * time.Second)
			r.wantIs(r.try(&x.user, "k"))
		})
	})
	t.Run("also when it is heard of after the vote", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			y := r.process(redlock.Config{TTL: long, NodeTimeout: time.Second})
			y.cut(true, 1) // Y holds nodes 1 and 3, and node 2 has not heard of its MaxTTL
			ly := r.take(&y.user, "k", redlock.WithoutRenewal())
			y.cut(true, 0, 2)
			r.nodes[0].Forget()
			z := r.process(redlock.Config{TTL: short})
			z.cut(true, 1, 2) // node 1 is admitted by somebody who knows of nothing
			r.wantNoVote(r.try(&z.user, "k"))
			time.Sleep(short + time.Second)

			x := r.process(redlock.Config{TTL: short})
			slow(20*time.Millisecond, r.nodes[2]) // tells of the larger one when node 1 has voted,
			slow(50*time.Millisecond, r.nodes[1]) // and before node 2 makes a majority of it
			lx, err := x.TryLock(r.Context(), "k")
			r.wantOne(ly, lx)
			if err == nil {
				r.Fatal("got the lock with the vote of a node whose memory is too new")
			}
			time.Sleep(time.Second)
			if text, there := r.nodes[0].Get("k"); there && strings.Contains(text, "x") {
				r.Errorf("key %s stays on a node without a vote", text)
			}
			r.wantKeys("k", 1)
		})
	})
	void := func(t *testing.T, lostRelease bool) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			y := r.process(redlock.Config{TTL: long})
			y.cut(true, 1, 2, 3) // tells nodes 1 and 5 of its MaxTTL
			r.wantNoVote(r.try(&y.user, "other"))
			y.cut(true, 0, 4)
			r.nodes[0].Forget()
			z := r.process(redlock.Config{TTL: short})
			z.cut(true, 1, 2, 3, 4)
			r.wantNoVote(r.try(&z.user, "k"))
			time.Sleep(short + time.Second)

			// X: node 1 grants; node 5 tells of more; nodes 2, 3 and 4 are enough without node 1.
			x := r.process(redlock.Config{TTL: short})
			slow(20*time.Millisecond, r.nodes[4])
			slow(50*time.Millisecond, r.nodes[1:4]...)
			r.nodes[0].OnExec(func(name string, _ []string) { // what takes the key back is lost
				if name == "release" && lostRelease {
					r.nodes[0].Refuse("OOM no", "release")
				}
			})
			l := r.take(&x.user, "k", redlock.WithoutRenewal())
			time.Sleep(time.Second)
			if _, there := r.nodes[0].Get("k"); there != lostRelease {
				r.Fatalf("node 1 has the key: %v, want %v", there, lostRelease)
			}
			// Nodes 2 and 5 lose it: 3 and 4 are left, and node 1 must not make it three.
			r.nodes[1].Forget()
			r.nodes[4].Forget()
			if err := l.Extend(r.Context()); err == nil {
				r.Error("extended with the word of a node that had no vote")
			}
		})
	}
	t.Run("a void vote is taken back, also from a lock that is won", func(t *testing.T) { void(t, false) })
	t.Run("and never counts in an extend, if that fails", func(t *testing.T) { void(t, true) })
}

// F2, R3: whatever registers were lost, and however wrong clients' clocks are.
func TestF2TokensGrow(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		cfg := redlock.Config{TTL: 10 * time.Second}
		ahead, right, behind := r.process(cfg), r.process(cfg), r.process(cfg)
		ahead.machine.step(time.Hour)
		behind.machine.step(-time.Hour)
		last, who := uint64(0), ""
		take := func(p *process, name string) {
			t.Helper()
			l, err := p.Lock(r.within(time.Minute), "k")
			if err != nil {
				r.Fatalf("%s: %v", name, err)
			}
			if l.Token() <= last {
				r.Errorf("%s: token %d after %s's %d", name, l.Token(), who, last)
			}
			last, who = l.Token(), name
			r.wantIs(l.Unlock(r.Context()))
			time.Sleep(time.Millisecond)
		}
		all := func(when string) {
			t.Helper()
			for range 2 {
				take(behind, "behind, "+when)
				take(ahead, "ahead, "+when)
				take(behind, "behind, "+when)
				take(right, "right, "+when)
			}
			take(ahead, "ahead, "+when)
		}
		all("at first")
		for i, n := range r.nodes {
			n.Forget()
			all(fmt.Sprintf("after node %d forgot", i+1))
		}
		kept := r.nodes[0].Snapshot()
		all("later")
		for _, n := range r.nodes {
			n.Forget()
		}
		take(behind, "behind, after all forgot")
		all("after all forgot")
		for _, n := range r.nodes {
			n.RestartFromSnapshot(kept)
		}
		take(behind, "behind, after all went back")
		all("after all went back")
		for _, n := range r.nodes {
			n.Forget()
		}
		r.wantIs(behind.Admit(r.Context()))
		take(behind, "behind, after Admit")
		all("after Admit")
		for _, n := range r.nodes {
			flushAll(n)
		}
		take(behind, "behind, after FLUSHALL")
		all("after FLUSHALL")
		time.Sleep(8 * 24 * time.Hour) // the registers end
		for _, n := range r.nodes {
			if _, there := n.HGet("ql:h:k", "token"); there {
				r.Fatal("a register is still there after more than a week")
			}
		}
		take(behind, "behind, after the registers ended")
		all("after the registers ended")
	})
}

// G1: a node without its scripts has lost nothing else. The repetition with the text is that of the
// node over go-redis; here it is only that nobody has to wait afterwards.
func TestG1NoScriptIsNoLoss(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		a := r.process(redlock.Config{})
		r.warm(&a.user)
		for _, n := range r.nodes {
			n.Refuse("NOSCRIPT No matching script.", "acquire")
		}
		r.wantNoVote(r.try(&a.user, "k"))
		for _, n := range r.nodes {
			n.Refuse("", "acquire")
		}
		began := time.Now()
		r.take(&a.user, "k")
		r.wantTook(began, 0, time.Second)
	})
}

// G2: fail-over and back again, on the same connection and with nobody speaking to the interim
// primary; the old primary has its run id, its scripts and its old marker back.
func TestG2FailBackOnTheSameConnection(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		cfg := redlock.Config{TTL: 10 * time.Second}
		a, b := r.process(cfg), r.process(cfg)
		r.warm(&a.user)
		r.warm(&b.user)
		s1, s2 := r.nodes[0], fakenode.New("interim:6379")
		runID := s1.RunID()
		s2.Demote(s1)
		b.cut(true, 2) // B will need node 1
		a.cut(true, 1)
		la := r.take(&a.user, "k") // nodes 1 and 3; not replicated
		a.cut(true, 0)             // and renewed nowhere but there
		s2.Promote()
		s1.Demote(s2)
		s1.Promote()
		if s1.RunID() != runID || s1.Hash("ql:node") == nil {
			r.Fatal("node 1 has no marker or another process: this tests nothing")
		}
		a.cut(false, 0)
		promoted := time.Now()
		for {
			lb, err := b.TryLock(r.Context(), "k")
			r.wantOne(la, lb)
			if err == nil {
				r.Fatal("got the lock while it was held")
			}
			if left := la.Remaining(); left <= 0 {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		lb, err := b.Lock(r.within(time.Minute), "k")
		if err != nil {
			r.Fatal(err)
		}
		if lb.Token() <= la.Token() {
			r.Errorf("token %d after %d", lb.Token(), la.Token())
		}
		// MaxTTL, and the lag of a node that was a replica: 10 s where it cannot be read.
		r.wantTook(promoted, 20*time.Second, 22*time.Second)
	})
}

// G3: a pair of which both sides take writes can vote twice.
func TestG3Pairs(t *testing.T) {
	t.Parallel()
	cfg := redlock.Config{TTL: 10 * time.Second}
	t.Run("without min-replicas-to-write: no vote", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			r.nodes[0].ShowReplicas(1, false)
			r.nodes[1].ShowReplicas(1, false)
			a := r.process(cfg)
			round := r.wantNoVote(r.try(&a.user, "k"))
			// The third node's vote may come after the round is decided.
			if !strings.Contains(round.Error(), "min-replicas-to-write") || round.Votes > 1 {
				r.Errorf("got %v; want one vote at most, and the reason", round)
			}
			time.Sleep(time.Second)
			r.wantKeys("k", 0)
			for i, n := range a.Nodes(r.Context()) {
				refused := n.Err != nil && strings.Contains(n.Err.Error(), "min-replicas-to-write")
				if refused != (i < 2) {
					r.Errorf("node %d: %v", i+1, n.Err)
				}
			}
			r.nodes[0].ShowReplicas(1, true) // its operator sets it
			r.take(&a.user, "k")
		})
	})
	t.Run("TrustReplicas: a vote, and one warning", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			r.nodes[0].ShowReplicas(1, false)
			trusting := cfg
			trusting.TrustReplicas = true
			a := r.process(trusting)
			for range 3 {
				r.warm(&a.user)
				a.Nodes(r.Context())
			}
			if n := strings.Count(a.log.String(), "without min-replicas-to-write"); n != 1 {
				r.Errorf("warned %d times, want once:\n%s", n, a.log)
			}
			if warnings := a.Nodes(r.Context())[0].Warnings; len(warnings) != 1 {
				r.Errorf("Nodes: warnings %q, want one", warnings)
			}
		})
	})
	t.Run("after a fail-over it waits MaxTTL and the lag", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			s2 := fakenode.New("replica:6379")
			for _, n := range []*fakenode.Node{r.nodes[0], s2} {
				n.ShowReplicas(1, true)
				n.SetNature(fakenode.Nature{Lag: 3 * time.Second})
			}
			a, b := r.process(cfg), r.process(cfg)
			r.warm(&a.user)
			a.cut(true, 1)
			la := r.take(&a.user, "k") // nodes 1 and 3
			s2.Demote(r.nodes[0])
			s2.Delete("k") // not replicated
			s2.Promote()
			promoted := time.Now()
			b.addrs[0].lead(s2) // the partition: A with the old primary, B with the new one
			b.cut(true, 2)
			time.AfterFunc(3*time.Second, func() { r.nodes[0].Demote(s2) }) // no replica: no writes
			var lb *redlock.Lock
			for lb == nil {
				lb, _ = b.TryLock(r.Context(), "k", redlock.WithoutRenewal())
				r.wantOne(la, lb)
				if time.Since(promoted) > time.Minute {
					r.Fatal("B never gets the lock")
				}
				time.Sleep(100 * time.Millisecond)
			}
			r.wantTook(promoted, 13*time.Second, 13500*time.Millisecond)
		})
	})
}

// G4: nothing but the marker says how old a memory is.
func TestG4NoShortCut(t *testing.T) {
	t.Parallel()
	// A holds nodes 1 and 3 for ever; node 1 loses its memory in some way. B cannot reach node 3, and
	// asks until it has waited as long as it has to.
	run := func(t *testing.T, lag time.Duration, lose func(r *rig, b *process)) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			cfg := redlock.Config{TTL: 10 * time.Second}
			a := r.process(cfg)
			r.warm(&a.user)
			time.Sleep(30 * 24 * time.Hour) // all processes are old
			a.cut(true, 1)
			la := r.take(&a.user, "k")
			a.cut(true, 0)
			b := r.process(cfg) // a new process: it knows of nothing
			b.cut(true, 2)
			lost := time.Now()
			lose(r, b)
			for {
				lb, err := b.TryLock(r.Context(), "k")
				r.wantOne(la, lb)
				if err == nil {
					r.wantTook(lost, cfg.TTL+lag, cfg.TTL+lag+time.Second)
					return
				}
				if time.Since(lost) > time.Minute {
					r.Fatal("B never gets the lock: this tests nothing")
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	t.Run("a: FLUSHALL, and a new process asks first", func(t *testing.T) {
		run(t, 0, func(r *rig, _ *process) { flushAll(r.nodes[0]) })
	})
	t.Run("b: promoted before it got the marker", func(t *testing.T) {
		run(t, 10*time.Second, func(r *rig, b *process) {
			s2 := fakenode.New("replica:6379")
			s2.Demote(r.nodes[0])
			flushAll(s2)
			s2.Promote()
			b.addrs[0].lead(s2)
		})
	})
	t.Run("c: the address leads to another old server", func(t *testing.T) {
		run(t, 0, func(_ *rig, b *process) { b.addrs[0].lead(fakenode.New("old:6379")) })
	})
	t.Run("d: a host that boots with a slow clock and is then stepped", func(t *testing.T) {
		run(t, 0, func(r *rig, _ *process) {
			r.nodes[0].StepClock(-time.Hour)
			r.nodes[0].Forget()
			r.nodes[0].StepClock(time.Hour)
		})
	})
}

// The address of a node leads to another server, which votes, and then back: to a memory that is
// whole and votes, and knows nothing of what was locked meanwhile.
func TestAnAddressThatLeadsBackDoesNotVoteForMaxTTL(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		r.old()
		cfg := redlock.Config{TTL: 10 * time.Second}
		a, b := r.process(cfg), r.process(cfg)
		r.warm(&a.user)
		r.warm(&b.user)
		elsewhere := fakenode.New("elsewhere:6379")
		for _, p := range []*process{a, b} {
			p.addrs[0].lead(elsewhere)
			r.warm(&p.user)
		}
		time.Sleep(cfg.TTL)
		a.cut(true, 1)
		la := r.take(&a.user, "k", redlock.WithoutRenewal()) // there, and on node 3
		taken := time.Now()
		for _, p := range []*process{a, b} {
			p.addrs[0].lead(r.nodes[0])
		}
		b.cut(true, 2)
		for {
			lb, err := b.TryLock(r.Context(), "k")
			r.wantOne(la, lb)
			if err == nil {
				r.wantTook(taken, cfg.TTL, cfg.TTL+time.Second)
				return
			}
			if time.Since(taken) > time.Minute {
				r.Fatal("B never gets the lock: this tests nothing")
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// G5: admissions at once, and later ones, leave the time as it is.
func TestG5TwoAdmissions(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		for i, n := range r.nodes {
			n.Faults().DelayRequests(fakenode.Jitter(uint64(i), 0, 10*time.Millisecond))
		}
		var all sync.WaitGroup
		began := time.Now()
		for range 5 {
			p := r.process(redlock.Config{})
			all.Go(func() { r.wantNoVote(r.try(&p.user, "k")) })
		}
		all.Wait()
		time.Sleep(time.Second) // for the nodes that no verdict needs
		from := make([]string, len(r.nodes))
		for i, n := range r.nodes {
			from[i], _ = n.HGet("ql:node", "from")
		}
		for range 5 {
			time.Sleep(time.Second)
			p := r.process(redlock.Config{})
			r.wantNoVote(r.try(&p.user, "k"))
		}
		for i, n := range r.nodes {
			if got, _ := n.HGet("ql:node", "from"); got != from[i] {
				r.Errorf("node %d votes from %s, and from %s after more admissions", i+1, from[i], got)
			}
		}
		p := r.process(redlock.Config{})
		l, err := p.Lock(r.within(time.Minute), "k")
		if err != nil {
			r.Fatal(err)
		}
		r.wantTook(began, 10*time.Second, 11*time.Second)
		r.wantHeld(l)
	})
}

// G6: what the guard costs.
func TestG6WhatTheGuardCosts(t *testing.T) {
	t.Parallel()
	t.Run("a rolling restart, one node per MaxTTL, costs nothing", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
			held := r.take(&a.user, "held")
			for i := range 300 {
				if i%105 == 50 {
					r.nodes[i/105].Restart()
				}
				l, err := b.Lock(r.within(time.Second), "k")
				if err != nil {
					r.Fatalf("at %v: %v", time.Duration(i)*100*time.Millisecond, err)
				}
				r.wantIs(l.Unlock(r.Context()))
				time.Sleep(100 * time.Millisecond)
			}
			r.wantHeld(held)
		})
	})
	t.Run("all at once: none for MaxTTL, and everybody is told for how long", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{TTL: time.Minute})
			la := r.take(&a.user, "k")
			for _, n := range r.nodes {
				n.Forget()
			}
			restarted := time.Now()
			r.wantNoVote(r.try(&a.user, "other")) // first contact: the nodes begin to wait
			time.Sleep(10 * time.Second)
			round := r.wantNoVote(r.try(&a.user, "other"))
			if want := time.Minute - time.Since(restarted); !near(round.Remaining, want) {
				r.Errorf("remaining %v, want %v", round.Remaining, want)
			}
			text := a.log.String()
			l, err := a.Lock(r.within(5*time.Minute), "k")
			if err != nil {
				r.Fatal(err)
			}
			r.wantTook(restarted, time.Minute, time.Minute+2*time.Second)
			r.wantLost(la)
			if l.Token() <= la.Token() {
				r.Errorf("token %d after %d", l.Token(), la.Token())
			}
			text = strings.TrimPrefix(a.log.String(), text)
			until := restarted.Add(time.Minute).UTC().Format("15:04:0")
			if n := strings.Count(text, "Lock waits"); n != 1 || !strings.Contains(text, until) {
				r.Errorf("%d lines say that Lock waits until %s.., want one:\n%s", n, until, text)
			}
		})
	})
	t.Run("a new cluster waits once, or its operator says Admit", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			a := r.process(redlock.Config{})
			r.wantNoVote(r.try(&a.user, "k"))
			r.wantIs(a.Admit(r.Context()))
			r.take(&a.user, "k")
			for i, n := range a.Nodes(r.Context()) {
				if n.Err != nil || !n.VotesFrom.IsZero() {
					r.Errorf("node %d: votes from %v, %v; want always", i+1, n.VotesFrom, n.Err)
				}
			}
			b := r.process(redlock.Config{}) // Admit holds for all
			r.wantIs(r.try(&b.user, "k"), redlock.ErrHeld)
			r.nodes[0].Forget() // and not for a later memory
			r.nodes[1].Forget()
			r.wantNoVote(r.try(&b.user, "other"))
		})
	})
}

// R5: since says when the memory began, from when it votes; and an admission that was on its way
// while the node restarted is that of the memory it finds.
func TestR5Admissions(t *testing.T) {
	t.Parallel()
	t.Run("Admit leaves since", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			a := r.process(redlock.Config{})
			r.wantNoVote(r.try(&a.user, "k"))
			a.Nodes(r.Context()) // also those that no verdict needed
			since, _ := r.nodes[0].HGet("ql:node", "since")
			time.Sleep(5 * time.Second)
			r.wantIs(a.Admit(r.Context()))
			after, _ := r.nodes[0].HGet("ql:node", "since")
			from, _ := r.nodes[0].HGet("ql:node", "from")
			if after != since || from != "0" {
				r.Errorf("since %s, from %s; want %s, 0", after, from, since)
			}
		})
	})
	t.Run("INFO is read where the marker is written", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			old := r.process(redlock.Config{NodeTimeout: 2 * time.Second})
			old.links[0].Faults().DelayRequests(fakenode.Fixed(time.Second))
			go old.Nodes(r.Context()) // its admission is executed after two seconds
			time.Sleep(1500 * time.Millisecond)
			r.nodes[0].Forget()
			other := r.process(redlock.Config{})
			r.wantNoVote(r.try(&other.user, "k"))
			other.Nodes(r.Context()) // also those that no verdict needed
			since, _ := r.nodes[0].HGet("ql:node", "since")
			time.Sleep(3 * time.Second)
			if id, _ := r.nodes[0].HGet("ql:node", "id"); id != r.nodes[0].Identity() {
				r.Errorf("marker of %s, the memory is %s", id, r.nodes[0].Identity())
			}
			if after, _ := r.nodes[0].HGet("ql:node", "since"); after != since {
				r.Errorf("since %s after a late admission, want %s", after, since)
			}
		})
	})
}

// Nodes without INFO have no guard, and it is said; elsewhere an INFO that fails is no vote.
func TestGuardWithoutInfo(t *testing.T) {
	t.Parallel()
	t.Run("refused at first contact: guard off", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			for _, n := range r.nodes {
				n.Refuse("NOPERM this user has no permissions to run the 'info' command", "info")
			}
			a := r.process(redlock.Config{})
			r.take(&a.user, "k")
			for i, n := range a.Nodes(r.Context()) {
				if !n.GuardOff || len(n.Warnings) == 0 {
					r.Errorf("node %d: guard off %v, warnings %q; want true and one", i+1, n.GuardOff, n.Warnings)
				}
			}
			if !strings.Contains(a.log.String(), "INFO is refused") {
				r.Errorf("not logged:\n%s", a.log)
			}
		})
	})
	t.Run("refused at first contact, with a marker there: no vote", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			for _, n := range r.nodes {
				n.Refuse("NOPERM this user has no permissions to run the 'info' command", "info")
			}
			a := r.process(redlock.Config{})
			r.wantNoVote(r.try(&a.user, "k"))
			r.wantKeys("k", 0)
		})
	})
	t.Run("refused later: no vote, and back with INFO", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			r.old()
			a := r.process(redlock.Config{})
			r.warm(&a.user)
			for _, text := range []string{"NOPERM no 'info'", "ERR unknown command 'info'", "LOADING"} {
				r.nodes[0].Refuse(text, "info")
				r.nodes[1].Refuse(text, "info")
				for range 3 {
					r.wantNoVote(r.try(&a.user, "k"))
				}
				time.Sleep(time.Second)
				r.wantKeys("k", 0)
				r.nodes[0].Refuse("", "info")
				r.nodes[1].Refuse("", "info")
				r.wantIs(r.take(&a.user, "k").Unlock(r.Context()))
				synctest.Wait()
			}
		})
	})
}

// R7: the word of a guarded call counts only with the INFO behind it.
func TestR7HalfAPipelineIsNoVote(t *testing.T) {
	t.Parallel()
	for lost := range 3 {
		t.Run(fmt.Sprintf("replies=%d", lost), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				r.old()
				a := r.process(redlock.Config{})
				r.warm(&a.user)
				for _, n := range r.nodes[:2] {
					n.Faults().BreakReplies(func(of int) int {
						return min(of-1, lost)
					})
				}
				r.wantNoVote(r.try(&a.user, "k"))
				for _, n := range r.nodes {
					n.Faults().Clear()
				}
				time.Sleep(3 * time.Second)
				r.wantKeys("k", 0)
			})
		})
	}
}

// A holder whose nodes forgot one after another is told before a rival can win.
func TestRestartsOfAMajorityOneByOne(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name string
		lose func(*fakenode.Node, *fakenode.Snapshot)
	}{
		{"empty", func(n *fakenode.Node, _ *fakenode.Snapshot) { n.Forget() }},
		{"from a snapshot", func(n *fakenode.Node, s *fakenode.Snapshot) { n.RestartFromSnapshot(s) }},
		{"flushed", func(n *fakenode.Node, _ *fakenode.Snapshot) { flushAll(n) }},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				r.old()
				a, b := r.process(redlock.Config{}), r.process(redlock.Config{})
				r.warm(&a.user)
				var before []*fakenode.Snapshot
				for _, n := range r.nodes {
					before = append(before, n.Snapshot())
				}
				la := r.take(&a.user, "k")
				got := make(chan *redlock.Lock, 1)
				go func() {
					lb, err := b.Lock(r.within(5*time.Minute), "k")
					if err != nil {
						r.Errorf("B: %v", err)
					}
					r.wantOne(la, lb)
					got <- lb
				}()
				for i, n := range r.nodes {
					time.Sleep(300 * time.Millisecond)
					how.lose(n, before[i])
				}
				lb := <-got
				r.wantLost(la)
				if lb.Token() <= la.Token() {
					r.Errorf("token %d after %d", lb.Token(), la.Token())
				}
				var round *redlock.RoundError
				if losses := a.diary.losses(); len(losses) != 1 || !errors.As(losses[0].Err, &round) {
					r.Errorf("losses told: %v, want one", losses)
				}
			})
		})
	}
}
