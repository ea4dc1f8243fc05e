package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// inspect is Inspect that must find a majority.
func (r *rig) inspect(u *user, name string) redlock.Status {
	r.Helper()
	s, err := u.Inspect(r.Context(), name)
	if err != nil {
		r.Fatalf("Inspect(%q): %v", name, err)
	}
	return s
}

func TestInspectOfAHeldLock(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{Identity: "web-3:4711"}), r.user(redlock.Config{})
		l := r.take(a, "k", redlock.WithoutRenewal())
		time.Sleep(4 * time.Second)
		before := fmt.Sprint(r.keys())
		s := r.inspect(b, "k")
		if s.Name != "k" || s.Holder != "web-3:4711" || s.Votes != 5 || s.Quorum != 3 || s.Nodes != 5 ||
			s.Token != l.Token() || s.Remaining != 6*time.Second || s.Waiters != 0 {
			r.Errorf("got %+v", s)
		}
		for i, n := range s.PerNode {
			want := redlock.NodeLock{Node: r.nodes[i].Name(), Holder: "web-3:4711",
				Remaining: 6 * time.Second, Token: l.Token()}
			if n != want {
				r.Errorf("node %d: got %+v, want %+v", i, n, want)
			}
		}
		if after := fmt.Sprint(r.keys()); after != before {
			r.Errorf("Inspect changed what nodes have:\n%s\nwant\n%s", after, before)
		}
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait() // a majority is enough for Unlock
		s = r.inspect(b, "k")
		if s.Holder != "" || s.Votes != 0 || s.Remaining != 0 || s.Token != l.Token() {
			r.Errorf("after Unlock: got %+v, want nobody's, with the register as it was", s)
		}
		if s = r.inspect(b, "never"); s.Holder != "" || s.Votes != 0 || s.Token != 0 {
			r.Errorf("a name nobody used: got %+v", s)
		}
	})
}

// keys are all that the nodes have.
func (r *rig) keys() (all [][]fakenode.Key) {
	for _, n := range r.nodes {
		all = append(all, n.Keys())
	}
	return all
}

func TestInspectOfDisagreement(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		set := func(holders ...string) {
			for i, holder := range holders {
				r.nodes[i].Delete("k")
				if holder != "" {
					r.nodes[i].Set("k", "ql1:"+holder+"/x", time.Duration(i+1)*time.Second)
				}
			}
		}
		for _, c := range []struct {
			holders []string
			holder  string
			votes   int
			left    time.Duration
		}{
			{[]string{"a", "a", "a", "b", "b"}, "a", 3, 3 * time.Second},
			{[]string{"a", "a", "a", "a", "b"}, "a", 4, 3 * time.Second},
			{[]string{"a", "a", "b", "b", "c"}, "", 2, 0},
			{[]string{"a", "", "", "", ""}, "", 1, 0},
			{[]string{"", "", "", "", ""}, "", 0, 0},
		} {
			set(c.holders...)
			s := r.inspect(u, "k")
			if s.Holder != c.holder || s.Votes != c.votes || s.Remaining != c.left {
				r.Errorf("%q: got holder %q, %d votes, %v, want %q, %d, %v", c.holders,
					s.Holder, s.Votes, s.Remaining, c.holder, c.votes, c.left)
			}
			for i, n := range s.PerNode {
				if n.Holder != c.holders[i] {
					r.Errorf("%q: node %d: got %q", c.holders, i, n.Holder)
				}
			}
		}
		// Another library's token is shown as it is, a key without an end as such.
		r.nodes[0].Set("k", "c29tZXRoaW5n", 0)
		if n := r.inspect(u, "k").PerNode[0]; n.Holder != "c29tZXRoaW5n" || n.Remaining >= 0 {
			r.Errorf("a key without an end: got %+v", n)
		}
		r.nodes[1].SetHash("ql:h:k", map[string]string{"token": "77"}, time.Minute)
		r.nodes[2].SetHash("ql:h:k", map[string]string{"token": "99"}, time.Minute)
		if s := r.inspect(u, "k"); s.Token != 99 || s.PerNode[1].Token != 77 || s.PerNode[0].Token != 0 {
			r.Errorf("registers: got %+v, want the largest, and each node's", s)
		}
	})
}

func TestInspectCountsWaitersOfThisProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.take(a, "k")
		ctx := r.within(3 * time.Second)
		for range 4 {
			go b.Lock(ctx, "k")
		}
		time.Sleep(time.Second)
		if got := r.inspect(b, "k").Waiters; got != 4 {
			r.Errorf("%d waiters, want 4", got)
		}
		if got := r.inspect(a, "k").Waiters; got != 0 {
			r.Errorf("%d waiters in another process, want 0", got)
		}
		time.Sleep(3 * time.Second)
		if got := r.inspect(b, "k").Waiters; got != 0 {
			r.Errorf("%d waiters after their time, want 0", got)
		}
	})
}

func TestInspectWithNodesMissing(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{Identity: "web-3:4711"}), r.user(redlock.Config{})
		r.take(a, "k")
		b.cut(true, 0)
		r.nodes[1].Faults().Down(true)
		began := time.Now()
		s := r.inspect(b, "k")
		r.wantTook(began, 0, redlock.DefaultNodeTimeout)
		if s.Holder != "web-3:4711" || s.Votes != 3 || s.PerNode[0].Err == nil ||
			s.PerNode[1].Err == nil || s.PerNode[2].Err != nil {
			r.Errorf("two of five missing: got %+v", s)
		}
		r.nodes[2].Faults().Down(true)
		began = time.Now()
		s, err := b.Inspect(r.Context(), "k")
		r.wantTook(began, 0, redlock.DefaultNodeTimeout)
		r.wantIs(err, redlock.ErrNoQuorum)
		if s.Holder != "" || s.Votes != 2 || len(s.PerNode) != 5 || s.PerNode[4].Holder != "web-3:4711" {
			r.Errorf("three of five missing: got %+v, want what the others say and no holder", s)
		}
		if round := r.round(err); len(round.Errs) != 3 || !strings.Contains(err.Error(), "node0:6379") {
			r.Errorf("got %v, want the three named", err)
		}
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		_, err = b.Inspect(ctx, "k")
		r.wantIs(err, context.Canceled)
		r.wantIs(b.Close())
		_, err = b.Inspect(r.Context(), "k")
		r.wantIs(err, redlock.ErrClosed)
	})
}

func TestNodesTellHowTheyAre(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		slow(10*time.Millisecond, r.nodes[0])
		r.nodes[1].Faults().Down(true)
		r.nodes[2].Forget()
		r.nodes[3].StepClock(-300 * time.Millisecond)
		r.nodes[4].SetNature(fakenode.Nature{Evicts: "allkeys-lru"})
		began := time.Now()
		all := u.Nodes(r.Context())
		r.wantTook(began, 0, redlock.DefaultNodeTimeout)
		for i, n := range all {
			if n.Node != r.nodes[i].Name() || n.Reachable != (i != 1) || n.GuardOff ||
				(n.Err == nil) != (i != 1 && i != 2) {
				r.Errorf("node %d: got %+v", i, n)
			}
		}
		if got := all[0].Latency; got != 10*time.Millisecond {
			r.Errorf("latency %v, want 10ms", got)
		}
		if text := fmt.Sprint(all[1].Err); !strings.Contains(text, "node1:6379") {
			r.Errorf("a node that is down: %s", text)
		}
		// It was never spoken to since it forgot: from now on it waits.
		if text := fmt.Sprint(all[2].Err); !strings.Contains(text, "another 10s") ||
			all[2].VotesFrom.Before(r.nodes[2].Now().Add(9*time.Second)) {
			r.Errorf("a node that waits: %+v", all[2])
		}
		if got := all[3].ClockOffset; got > -290*time.Millisecond || got < -310*time.Millisecond {
			r.Errorf("clock offset %v, want -300ms", got)
		}
		if n := all[4]; n.Version != "7.0.15" || len(n.Warnings) != 1 ||
			!strings.Contains(n.Warnings[0], "allkeys-lru") {
			r.Errorf("a node that evicts: %+v", n)
		}
		if got := all[0].MaxTTL; got != redlock.DefaultTTL {
			r.Errorf("MaxTTL %v, want that of its only user, %v", got, redlock.DefaultTTL)
		}
		time.Sleep(9 * time.Second)
		if n := u.Nodes(r.Context())[2]; n.Err == nil {
			r.Errorf("after 9 s: %+v, want that it waits", n)
		}
		time.Sleep(2 * time.Second)
		if n := u.Nodes(r.Context())[2]; n.Err != nil {
			r.Errorf("after 11 s: %+v, want its vote", n)
		}
	})
}

func TestNodesShowNoPassword(t *testing.T) {
	t.Parallel()
	c, err := redlock.New(redlock.Config{
		Addrs: []string{"redis://user:geheim@127.0.0.1:1", "rediss://:geheim@127.0.0.1:2/1",
			"unix://u:geheim@/nowhere.sock"},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, inspectErr := c.Inspect(t.Context(), "k")
	_, lockErr := c.TryLock(t.Context(), "k")
	text := fmt.Sprintf("%+v %v %v %v", c.Nodes(t.Context()), inspectErr, lockErr, c.Admit(t.Context()))
	if strings.Contains(text, "geheim") {
		t.Errorf("the password is shown in %s", text)
	}
	if !strings.Contains(text, "redis://127.0.0.1:1") {
		t.Errorf("the address is not shown in %s", text)
	}
}

func TestErrHeldNamesTheHolder(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{Identity: "web-3:4711"}), r.user(redlock.Config{})
		r.take(a, "report", redlock.WithoutRenewal())
		time.Sleep(5800 * time.Millisecond)
		err := r.try(b, "report")
		r.wantIs(err, redlock.ErrHeld)
		if text := err.Error(); !strings.Contains(text, `"report"`) ||
			!strings.Contains(text, "held by web-3:4711 for another 4.2s unless renewed") {
			r.Errorf("got %q, want that it is held by web-3:4711 for another 4.2s", text)
		}
		if round := r.round(err); round.Holder != "web-3:4711" || round.Remaining != 4200*time.Millisecond {
			r.Errorf("got holder %q for %v", round.Holder, round.Remaining)
		}
		_, err = b.Lock(r.within(time.Second), "report")
		r.wantIs(err, redlock.ErrHeld, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "held by web-3:4711 for another") {
			r.Errorf("after a wait: got %q", err)
		}
		synctest.Wait()
	})
}
