package main

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// requireRedis skips, or with CI=true fails, as redisproc.ForTest does.
func requireRedis(t *testing.T) { redisproc.ForTest(t, 1) }

// TestNoTwoHoldersOverEpisodes is the short form of the command. That the observer would see two
// holders the next test shows, step by step and not by chance.
func TestNoTwoHoldersOverEpisodes(t *testing.T) {
	requireRedis(t)
	s := defaults()
	s.count, s.ttl = 50, 600*time.Millisecond // the race detector slows it down
	var out strings.Builder
	ok, err := run(t.Context(), s, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	if !ok {
		t.Error("a name had two holders, or a token did not grow")
	}
}

// TestAnEpisodeByHand is the shortest way to two holders, step by step: A holds on a bare majority,
// one of its nodes forgets, and B asks.
func TestAnEpisodeByHand(t *testing.T) {
	t.Parallel()
	for _, guard := range []bool{true, false} {
		name := map[bool]string{true: "guard=on", false: "guard=off"}[guard]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redisproc.ForTest(t, nodes)
			open := func() *redlock.Client {
				c, err := redlock.New(redlock.Config{Addrs: servers.Addrs(), TTL: time.Minute,
					NodeTimeout: 5 * time.Second, DisableRestartGuard: !guard,
					Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() }) // frees what a wrong test left: no fault
				return c
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			a, b := open(), open()
			if guard {
				must(a.Admit(t.Context())) // in use for long
			}
			must(servers[3].Kill())
			must(servers[4].Kill())
			first, err := a.TryLock(t.Context(), "k", redlock.WithoutRenewal())
			must(err)
			observer := newLedger()
			observer.enter("k", first.Token(), first)
			for _, i := range []int{0, 3, 4} {
				must(servers[i].Restart(true))
			}
			second, err := b.TryLock(t.Context(), "k")
			if first.Remaining() <= 0 {
				t.Fatalf("the first lock's minute is over: the machine is too slow for this test")
			}
			switch {
			case guard && !errors.Is(err, redlock.ErrNoQuorum):
				t.Errorf("got %v, %v; want ErrNoQuorum: three nodes have forgotten", second, err)
			case !guard && err != nil:
				t.Errorf("got %v; want a second holder, or this test does not bite", err)
			}
			if err == nil {
				observer.enter("k", second.Token(), second)
			}
			if got := observer.sum().doubles == 1; got == guard {
				t.Errorf("the observer saw two holders: %v, with the guard on: %v", got, guard)
			}
			var round *redlock.RoundError
			if guard && errors.As(err, &round) && !(0 < round.Remaining && round.Remaining <= time.Minute) {
				t.Errorf("the nodes vote again in %v; want up to the MaxTTL of a minute", round.Remaining)
			}
		})
	}
}

// A span is a lock that is valid until its end.
type span struct{ end time.Time }

func (s *span) Remaining() time.Duration { return time.Until(s.end) }

func TestLedgerSeesTwoHoldersAndTokensThatFall(t *testing.T) {
	t.Parallel()
	long, over := &span{end: time.Now().Add(time.Hour)}, &span{}
	for _, c := range []struct {
		name string
		do   func(g *ledger)
		want counts
	}{
		{"one after the other", func(g *ledger) {
			g.leave(g.enter("k", 1, long), false)
			g.enter("k", 2, long)
		}, counts{won: 2}},
		{"two names", func(g *ledger) { g.enter("k", 2, long); g.enter("l", 1, long) }, counts{won: 2}},
		{"both valid", func(g *ledger) { g.enter("k", 1, long); g.enter("k", 2, long) },
			counts{won: 2, doubles: 1}},
		{"the first is lost and does not know it yet", func(g *ledger) {
			first := *long
			g.enter("k", 1, &first)
			first.end = time.Time{}
			g.enter("k", 2, long)
		}, counts{won: 2}},
		{"the second is over before it is noted", func(g *ledger) {
			g.enter("k", 2, long)
			g.enter("k", 1, over)
		}, counts{won: 1, unheld: 1}},
		{"the first left after the second was won", func(g *ledger) {
			first := g.enter("k", 1, long)
			g.leave(first, false)
			first.seen = time.Now().Add(time.Minute)
			g.enter("k", 2, long)
		}, counts{won: 2, doubles: 1}},
		{"the same token", func(g *ledger) {
			g.leave(g.enter("k", 7, long), true)
			g.enter("k", 7, long)
		}, counts{won: 2, lost: 1, fallen: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newLedger()
			c.do(g)
			if got := g.sum(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got, want := g.violated(), c.want.doubles+c.want.fallen > 0; got != want {
				t.Errorf("violated: %v, want %v", got, want)
			}
		})
	}
}
