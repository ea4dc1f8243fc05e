package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/redlock"
)

// elector makes an elector of a process whose clock is off by ahead.
func (f *fleet) elector(name string, ahead time.Duration, opts ...ElectorOption) *Elector {
	f.Helper()
	e, err := NewElector(f.client(name, ahead), "cron", opts...)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	return e
}

// leaders are those of the electors that say they lead, asked one after the other.
func leaders(ctx context.Context, all ...*Elector) (names []string) {
	for _, e := range all {
		if e.IsLeader(ctx) == nil {
			names = append(names, e.access.Identity)
		}
	}
	return names
}

func TestOneElectorLeadsBeforeAnybodyAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		a, b, c := f.elector("a", 0), f.elector("b", 0), f.elector("c", 0)
		time.Sleep(time.Second)
		got := leaders(t.Context(), a, b, c)
		if len(got) != 1 {
			t.Fatalf("leaders: %v, want one", got)
		}
		for _, e := range []*Elector{a, b, c} {
			leader, err := e.Leader(t.Context())
			if err != nil || leader.Identity != got[0] || leader.Token == 0 || leader.Remaining <= 0 ||
				leader.Self != (e.access.Identity == got[0]) {
				t.Errorf("%s: Leader = %+v, %v, want %s", e.access.Identity, leader, err, got[0])
			}
		}
	})
}

func TestAStandbySaysWhoLeadsAndForHowLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		f.elector("first", 0)
		time.Sleep(time.Second)
		second := f.elector("second", 0)
		time.Sleep(time.Second)
		err := second.IsLeader(t.Context())
		var round *redlock.RoundError
		if !errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrNoQuorum) ||
			!errors.As(err, &round) || round.Holder != "first" || round.Remaining <= 0 {
			t.Errorf("standby: %v", err)
		}
		for _, n := range f.nodes.Nodes()[:2] {
			n.Stop()
		}
		time.Sleep(30 * time.Second) // the lease has ended, and nobody can get it
		err = second.IsLeader(t.Context())
		if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrHeld) {
			t.Errorf("without a quorum: %v, want that it could not be decided", err)
		}
	})
}

func TestResignAndCloseHandOverInMilliseconds(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(context.Context, *Elector) error{
		"Resign": func(ctx context.Context, e *Elector) error { return e.Resign(ctx) },
		"Close":  func(_ context.Context, e *Elector) error { return e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 5)
				var mu sync.Mutex
				var led time.Time
				a := f.elector("a", 0)
				time.Sleep(time.Second)
				b := f.elector("b", 0, WithOnChange(func(leading bool) {
					mu.Lock()
					defer mu.Unlock()
					if leading {
						led = time.Now()
					}
				}))
				time.Sleep(time.Second)
				left := time.Now()
				if err := leave(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				if err := a.IsLeader(t.Context()); err == nil {
					t.Error("the old leader still says it leads")
				}
				time.Sleep(time.Second)
				if got := leaders(t.Context(), b); len(got) != 1 {
					t.Fatal("the standby does not lead")
				}
				mu.Lock()
				defer mu.Unlock()
				if took := led.Sub(left); took > 50*time.Millisecond {
					t.Errorf("hand-over took %v", took)
				}
			})
		})
	}
}

// TestStandbyCloseFreesNothing is rq/rq 1914 and 1531: a process that only tried released the lock
// by name when it ended.
func TestStandbyCloseFreesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		a := f.elector("a", 0)
		time.Sleep(time.Second)
		b := f.elector("b", 0)
		time.Sleep(time.Second)
		for range 2 { // twice is fine
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.IsLeader(t.Context()); err != nil {
			t.Errorf("after a standby's Close: %v", err)
		}
		if err := b.IsLeader(t.Context()); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("a closed elector: %v, want ErrClosed", err)
		}
		if err := b.Resign(t.Context()); err != nil {
			t.Errorf("Resign of one that does not lead: %v", err)
		}
	})
}

// TestAPartedLeaderSaysNoBeforeAnotherLeads is kubernetes 23731 and cilium 42920: the old leader
// went on, and its callback held the loss up.
func TestAPartedLeaderSaysNoBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		client := f.client("a", 0)
		a, err := NewElector(client, "cron", WithOnChange(func(leading bool) {
			if !leading {
				time.Sleep(30 * time.Second)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		time.Sleep(time.Second)
		b := f.elector("b", 0)
		time.Sleep(time.Second)
		was, err := a.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range f.nodes.Nodes()[:3] {
			n.Cut(client)
		}
		saidNo := time.Time{}
		for range 3000 {
			time.Sleep(10 * time.Millisecond)
			_, err := a.holds()
			if err != nil && saidNo.IsZero() {
				saidNo = time.Now()
			}
			if leaders(t.Context(), b) != nil {
				break
			}
		}
		if saidNo.IsZero() || !saidNo.Before(time.Now()) {
			t.Fatalf("the old leader said no at %v, the new one leads at %v", saidNo, time.Now())
		}
		now, err := b.Leader(t.Context())
		if err != nil || !now.Self || now.Token <= was.Token {
			t.Errorf("new leader %+v, %v after %+v: want itself, with a larger token", now, err, was)
		}
		time.Sleep(time.Minute)
	})
}

// TestTheTickAroundAHandOverIsNotFiredTwice: the new leader refuses a clock reading that is not
// past the old leader's mark by the guard.
func TestTheTickAroundAHandOverIsNotFiredTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		a := f.elector("a", 0)
		time.Sleep(time.Second)
		b := f.elector("b", 0)
		time.Sleep(time.Second)
		if err := a.IsLeader(t.Context()); err != nil { // a fires the tick
			t.Fatal(err)
		}
		fired := time.Now()
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // b leads, and its timer for the same tick is late
		err := b.IsLeader(t.Context())
		if !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%v after the old leader's tick: %v, want a no that matches ErrHeld",
				time.Since(fired), err)
		}
		time.Sleep(DefaultGuard)
		if err := b.IsLeader(t.Context()); err != nil {
			t.Errorf("past the guard: %v", err)
		}
		if err := b.IsLeader(t.Context()); err != nil {
			t.Errorf("a second job of the same tick: %v", err)
		}
	})
}

// TestAnHourAheadDoesNotKeepLaterLeadersOut is finding T8: nodes clamp the mark to their time.
func TestAnHourAheadDoesNotKeepLaterLeadersOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		a := f.elector("a", time.Hour)
		time.Sleep(time.Second)
		b := f.elector("b", 0)
		time.Sleep(time.Second)
		if err := a.IsLeader(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := b.IsLeader(t.Context()); err != nil {
			t.Errorf("the leader after one with a clock an hour ahead: %v", err)
		}
	})
}

// TestGocronFiresEachTickOnce runs plain gocron schedulers under both hooks, with hand-overs. It is
// go-co-op/gocron 681 and 688: an elector that said no was never asked again; dkron-io/dkron 1210.
func TestGocronFiresEachTickOnce(t *testing.T) {
	t.Parallel()
	hooks := map[string]func(*Elector) gocron.SchedulerOption{
		"WithDistributedElector": func(e *Elector) gocron.SchedulerOption {
			return gocron.WithDistributedElector(e)
		},
		"AsLocker": func(e *Elector) gocron.SchedulerOption {
			return gocron.WithDistributedLocker(e.AsLocker())
		},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 5)
				var electors []*Elector
				var schedulers []gocron.Scheduler
				for i := range 3 {
					e := f.elector(fmt.Sprint("web-", i), 0)
					s, err := gocron.NewScheduler(hook(e), gocron.WithLocation(time.UTC))
					if err != nil {
						t.Fatal(err)
					}
					_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() {
						at := time.Now().UTC().Truncate(time.Second)
						f.record.Begin(ticktest.Run{Job: "j", At: at, Replica: e.access.Identity})()
					}))
					if err != nil {
						t.Fatal(err)
					}
					electors, schedulers = append(electors, e), append(schedulers, s)
				}
				time.Sleep(1300 * time.Millisecond)
				for _, s := range schedulers {
					s.Start()
				}
				for i := range 20 { // the leader resigns between two ticks, again and again
					time.Sleep(3 * time.Second)
					for _, e := range electors {
						if err := e.Resign(t.Context()); err != nil {
							t.Errorf("hand-over %d: %v", i, err)
						}
					}
				}
				for _, s := range schedulers {
					if err := s.Shutdown(); err != nil {
						t.Error(err)
					}
				}
				seconds := make(map[time.Time]int)
				for _, run := range f.record.Runs("j") {
					seconds[run.At]++
				}
				for at, n := range seconds {
					if n > 1 {
						t.Errorf("the tick of %v was fired %d times", at, n)
					}
				}
				if len(seconds) < 58 {
					t.Errorf("%d ticks of 60 were fired", len(seconds))
				}
			})
		})
	}
}

func TestElectorsThatAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		c := f.client("a", 0)
		for name, c := range map[string]struct {
			client *redlock.Client
			name   string
			opts   []ElectorOption
			says   string
		}{
			"no client":    {nil, "n", nil, "client"},
			"no name":      {c, "", nil, "name"},
			"a long name":  {c, strings.Repeat("n", 1025), nil, "1025 bytes"},
			"a long lease": {c, "n", []ElectorOption{WithLeaseTTL(time.Hour)}, "MaxTTL"},
			"no validity":  {c, "n", []ElectorOption{WithLeaseTTL(time.Millisecond)}, "validity"},
			"no option":    {c, "n", []ElectorOption{nil}, "ElectorOption is nil"},
			"no guard":     {c, "n", []ElectorOption{WithGuard(0)}, "WithGuard"},
		} {
			e, err := NewElector(c.client, c.name, c.opts...)
			if e != nil || !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want ErrInvalid with %q", name, err, c.says)
			}
		}
		e := f.elector("b", 0)
		//lint:ignore SA1012 what is tested is that nil is refused
		if err := e.IsLeader(nil); !errors.Is(err, redlock.ErrInvalid) { //nolint:staticcheck
			t.Errorf("IsLeader(nil): %v", err)
		}
	})
}

// TestAClosedClientEndsTheCampaign leaves no goroutine: the bubble would tell.
func TestAClosedClientEndsTheCampaign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		c := f.client("a", 0)
		var mu sync.Mutex
		var told []bool
		e, err := NewElector(c, "cron", WithOnChange(func(leading bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, leading)
		}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-e.ended:
		default:
			t.Error("the campaign goes on")
		}
		err = e.IsLeader(t.Context())
		wantIs(t, err, []error{redlock.ErrClosed}, redlock.ErrNoQuorum, redlock.ErrHeld)
		_, err = e.Leader(t.Context())
		wantIs(t, err, []error{redlock.ErrClosed}, redlock.ErrNoQuorum, redlock.ErrNotHeld)
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(told) != "[true false]" {
			t.Errorf("told %v", told)
		}
	})
}
