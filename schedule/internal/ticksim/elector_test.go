package ticksim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/replay"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

// What the Elector asks for: the guard is more than clocks are apart and timers late, and less than
// the interval. Here 2 x electorSkew + mostLate is.
const (
	electors    = 5
	guard       = schedule.DefaultGuard
	electorSkew = 220 * time.Millisecond // of a replica's clock, both ways
	mostLate    = 40 * time.Millisecond
	interval    = time.Second
	term        = 15 * time.Minute // of virtual time for a seed
)

// An electorWorld is replicas that ask at every tick whether they lead.
type electorWorld struct {
	*world
	votes *electorCounts
	fired sync.Map // by tick: the replica that was told to fire it
	mu    sync.Mutex
	errs  []string // guarded by mu
}

// electorCounts say what terms have seen.
type electorCounts struct {
	due, fired, twice          atomic.Int64
	asked, held, undecided     atomic.Int64
	terms                      atomic.Int64 // times that a replica began to lead
	crashes, freezes           atomic.Int64
	resigned, closed           atomic.Int64
	nodesFailed, nodesRestarts atomic.Int64
}

func (c *electorCounts) String() string {
	return fmt.Sprintf("ticks due=%d fired=%d twice=%d\n"+
		"IsLeader asked=%d: another leads or led=%d, undecided=%d; changes of the leader=%d\n"+
		"replicas: crashes=%d freezes=%d resigned=%d closed=%d; nodes: failed=%d restarted empty=%d",
		c.due.Load(), c.fired.Load(), c.twice.Load(), c.asked.Load(), c.held.Load(),
		c.undecided.Load(), c.terms.Load(), c.crashes.Load(), c.freezes.Load(), c.resigned.Load(),
		c.closed.Load(), c.nodesFailed.Load(), c.nodesRestarts.Load())
}

// A candidate is one life of a replica with an Elector.
type candidate struct {
	world   *electorWorld
	name    string
	client  *redlock.Client
	elector *schedule.Elector
	clock   *wrongClock
	links   []*fakenode.Link
	late    *rand.Rand   // how late its timers are
	thaw    atomic.Int64 // when it goes on, as time.Time has it
	dead    atomic.Bool
	gone    chan struct{} // closed with dead
	once    sync.Once
}

func (w *electorWorld) candidate(name string, dice *rand.Rand) *candidate {
	c := &candidate{world: w, name: name, clock: &wrongClock{}, gone: make(chan struct{}),
		late: rand.New(rand.NewPCG(dice.Uint64(), 0))}
	c.clock.offset.Store(int64(between(dice, -electorSkew, electorSkew)))
	var nodes []quorum.Node
	for _, n := range w.nodes {
		link := n.Link()
		link.Faults().DelayRequests(c.stays)
		link.Faults().DelayReplies(c.stays)
		c.links, nodes = append(c.links, link), append(nodes, link)
	}
	made, err := door.NewClient(redlock.Config{Identity: name,
		Logger: slog.New(slog.DiscardHandler)}, nodes, c.clock)
	if err != nil {
		panic(err)
	}
	c.client = made.(*redlock.Client)
	c.elector, err = schedule.NewElector(c.client, "cron", schedule.WithLeaseTTL(4*time.Second),
		schedule.WithGuard(guard), schedule.WithOnChange(func(leading bool) {
			if leading {
				w.votes.terms.Add(1)
			}
		}))
	if err != nil {
		panic(err)
	}
	w.dying.Go(c.fire)
	return c
}

// stays is how long the process still stands still.
func (c *candidate) stays() time.Duration {
	return max(0, time.Until(time.Unix(0, c.thaw.Load())))
}

// fire asks at every tick of the replica's clock whether it leads, as gocron does, and fires then.
// A tick that came while the process stood still is asked for as soon as it goes on; those after it
// until then are dropped, as gocron does it.
func (c *candidate) fire() {
	for at := c.now().Truncate(interval); ; {
		at = at.Add(interval)
		if now := c.now(); at.Before(now.Add(-interval)) {
			at = now.Truncate(interval)
		}
		if !c.sleep(at.Sub(c.now()) + between(c.late, 0, mostLate)) {
			return
		}
		c.world.votes.asked.Add(1)
		err := c.elector.IsLeader(context.Background())
		if !c.sleep(0) {
			return
		}
		switch {
		case err == nil:
			c.world.fire(at, c.name)
		case errors.Is(err, redlock.ErrHeld):
			c.world.votes.held.Add(1)
		default:
			c.world.votes.undecided.Add(1)
		}
	}
}

func (c *candidate) now() time.Time { return c.clock.Now().Time() }

// sleep waits for d and for as long as the process stands still, and reports whether it lives.
func (c *candidate) sleep(d time.Duration) bool {
	for ; d > 0; d = c.stays() {
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-c.gone:
			timer.Stop()
			return false
		}
	}
	return !c.dead.Load()
}

func (w *electorWorld) fire(at time.Time, by string) {
	w.votes.fired.Add(1)
	if first, twice := w.fired.LoadOrStore(at.UnixMilli(), by); twice {
		w.votes.twice.Add(1)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, fmt.Sprintf("tick %s fired by %v and by %s",
			at.UTC().Format(time.TimeOnly), first, by))
	}
}

// die ends the process. A crash leaves the lease to its TTL; else it is given up first.
func (c *candidate) die(crash bool) {
	c.once.Do(func() {
		if crash {
			for _, l := range c.links {
				l.Faults().Partition(true)
			}
		} else {
			_ = c.elector.Close()
		}
		c.dead.Store(true)
		close(c.gone)
		c.world.dying.Go(func() {
			_ = c.elector.Close()
			_ = c.client.Close()
		})
	})
}

// live lets something happen to a replica again and again, most of it close to a tick.
func (w *electorWorld) live(index int) {
	dice := w.rand(uint64(slotStream + index))
	for life := 1; ; life++ {
		c := w.candidate(fmt.Sprintf("e%d.%d", index, life), dice)
		for !c.dead.Load() {
			rest := between(dice, time.Second, 40*time.Second)
			tick := time.Now().Add(rest).Truncate(interval)
			near := between(dice, -guard, guard)
			select {
			case <-time.After(time.Until(tick.Add(near))):
				w.suffer(c, dice)
			case <-w.over:
				c.die(false)
				return
			}
		}
		time.Sleep(between(dice, time.Millisecond, 10*time.Second))
	}
}

func (w *electorWorld) suffer(c *candidate, dice *rand.Rand) {
	switch dice.IntN(5) {
	case 0:
		w.votes.crashes.Add(1)
		c.die(true)
	case 1:
		w.votes.freezes.Add(1)
		c.thaw.Store(time.Now().Add(between(dice, 10*time.Millisecond, 12*time.Second)).UnixNano())
	case 2:
		w.votes.closed.Add(1)
		c.die(false)
	default:
		w.votes.resigned.Add(1)
		_ = c.elector.Resign(context.Background())
	}
}

// runElectors lives through a term in the caller's bubble.
func (p *plan) runElectors(votes *electorCounts) []string {
	w := &electorWorld{votes: votes, world: &world{plan: p, counts: &counts{},
		over: make(chan struct{})}}
	w.account = newAccount(w.world)
	w.build()
	var trouble sync.WaitGroup
	for i := range electors {
		trouble.Go(func() { w.live(i) })
	}
	trouble.Go(newWeather(w.world).run)
	time.Sleep(term)
	close(w.over)
	trouble.Wait()
	w.dying.Wait()
	votes.due.Add(int64(term / interval))
	votes.nodesFailed.Add(w.counts.nodesFailed.Load())
	votes.nodesRestarts.Add(w.counts.nodesForgot.Load())
	return w.errs
}

// TestElectors: no tick is fired twice while the clocks agree within the guard. Some are not fired
// at all, around every change of the leader, so all that is wanted of these is that they are few.
func TestElectors(t *testing.T) {
	t.Parallel()
	var votes electorCounts
	first := replay.Number(t, "QUORUMLOCK_TICK_SEED", 1)
	for i := range replay.Number(t, "QUORUMLOCK_TICK_SEEDS", 4) {
		p := newPlan(first+i, nights[0])
		synctest.Test(t, func(*testing.T) {
			for _, line := range p.runElectors(&votes) {
				t.Errorf("seed %d: %s", p.seed, line)
			}
		})
	}
	t.Log(&votes)
	if fired, due := votes.fired.Load(), votes.due.Load(); fired < due/2 {
		t.Errorf("%d of %d ticks were fired: too few to prove anything", fired, due)
	}
}
