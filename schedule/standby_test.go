//go:build unix

package schedule

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
)

// standbyTicks is how many ticks are refused, in virtual time. QUORUMLOCK_STANDBY_TICKS=100000 is
// more than a day of ticks every second: "make standby".
const standbyTicks = 5000

// What a refused tick may leave behind. Through the Elector hook it is 28 bytes and an instant.
const (
	mostBytes   = 8    // per tick
	mostObjects = 0.05 // per tick
	mostListed  = 2    // instants that have passed, in gocron's list
)

// A standby is a replica that is refused every tick of one job.
type standby struct {
	job     gocron.Job
	refused *atomic.Int64
	stop    func()
}

// TestAStandbyDoesNotGrow has no t.Parallel: it looks at the memory of the whole process.
//
// What is measured holds the nodes and the winner, too: their memory is flat as well.
func TestAStandbyDoesNotGrow(t *testing.T) {
	ticks := standbyTicks
	if text := os.Getenv("QUORUMLOCK_STANDBY_TICKS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1000 {
			t.Fatalf("QUORUMLOCK_STANDBY_TICKS=%q: want a number from 1000 on", text)
		}
		ticks = n
	}
	for name, start := range map[string]func(*fleet) standby{
		"Locker": lockerStandby, "Scheduler": schedulerStandby, "AsLocker": leaderStandby,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 3)
				s := start(f)
				defer s.stop()
				looks := s.watch(t, ticks)
				for i, l := range looks {
					t.Logf("fifth %d: %v", i, l)
				}
				wantFlat(t, looks)
			})
		})
	}
}

// A look is what the process uses after some ticks.
type look struct {
	ticks  int64 // refused since the start
	heap   int64
	object int64
	listed int // instants in gocron's list that have passed
	cpu    time.Duration
	per    time.Duration // CPU time per tick, since the look before
}

func (l look) String() string {
	return strconv.FormatInt(l.ticks, 10) + " refused, heap " +
		strconv.FormatInt(l.heap/1024, 10) + " KiB in " + strconv.FormatInt(l.object, 10) +
		" objects, listed " + strconv.Itoa(l.listed) + ", CPU per tick " + l.per.String()
}

// watch lets the ticks come and looks after each fifth of them; the first look is before them, when
// everything has its size.
func (s standby) watch(t *testing.T, ticks int) (looks []look) {
	t.Helper()
	// All looks, and the end, are half-way between two ticks: gocron's Shutdown spins while a Lock
	// sleeps, and in a bubble no time passes then.
	half := time.Now().Truncate(time.Second).Add(500*time.Second + time.Second/2)
	cpu := cpuTime(t) // of what ran before
	time.Sleep(time.Until(half))
	looks = append(looks, s.look(t, look{cpu: cpu}))
	for range 5 {
		time.Sleep(time.Duration(ticks/5) * time.Second)
		looks = append(looks, s.look(t, looks[len(looks)-1]))
	}
	if got := looks[5].ticks - looks[0].ticks; got < int64(ticks)*99/100 {
		t.Errorf("%d ticks were refused, want %d", got, ticks)
	}
	return looks
}

func (s standby) look(t *testing.T, before look) look {
	t.Helper()
	cpu := cpuTime(t)
	runtime.GC()
	runtime.GC() // the second empties the pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	l := look{ticks: s.refused.Load(), heap: int64(stats.HeapAlloc), object: int64(stats.HeapObjects),
		listed: passed(t, s.job)}
	if n := l.ticks - before.ticks; n > 0 {
		l.per = (cpu - before.cpu) / time.Duration(n)
	}
	l.cpu = cpuTime(t) // the look itself does not count
	return l
}

// passed are the instants in gocron's list that are over: what a refusal can leave behind.
func passed(t *testing.T, j gocron.Job) (n int) {
	t.Helper()
	next, err := j.NextRuns(1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range next {
		if at.Before(time.Now()) {
			n++
		}
	}
	return n
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// wantFlat judges memory, from the end of the first fifth on. Times depend on what else the machine
// does: they are only printed.
func wantFlat(t *testing.T, looks []look) {
	t.Helper()
	first, last := looks[1], looks[len(looks)-1]
	ticks := float64(last.ticks - first.ticks)
	bytes := float64(last.heap-first.heap) / ticks
	objects := float64(last.object-first.object) / ticks
	t.Logf("per tick: %+.2f bytes, %+.4f objects", bytes, objects)
	if bytes > mostBytes {
		t.Errorf("the heap grew by %.1f bytes per refused tick", bytes)
	}
	if objects > mostObjects {
		t.Errorf("the heap grew by %.3f objects per refused tick", objects)
	}
	if last.listed > mostListed {
		t.Errorf("gocron's list has %d instants that have passed", last.listed)
	}
}

// late is how far behind the winner a standby is.
const late = 10 * time.Millisecond

// lockerStandby is bound, and somebody else wins every tick.
func lockerStandby(f *fleet) standby {
	f.wins(time.Second)
	l, err := NewLocker(f.client("standby", 0))
	if err != nil {
		f.Fatal(err)
	}
	s := f.gocron(lateLocker{l})
	if err := l.Bind(s.scheduler); err != nil {
		f.Fatal(err)
	}
	s.scheduler.Start()
	return s.standby
}

// lateLocker leaves the tick to others.
type lateLocker struct{ gocron.Locker }

func (l lateLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	time.Sleep(late)
	return l.Locker.Lock(ctx, job)
}

// leaderStandby follows a leader.
func leaderStandby(f *fleet) standby {
	f.elector("leader", 0)
	time.Sleep(time.Second)
	e := f.elector("standby", 0)
	s := f.gocron(e.AsLocker())
	s.scheduler.Start()
	return s.standby
}

// schedulerStandby goes by a clock that is behind, by too little to be corrected.
func schedulerStandby(f *fleet) standby {
	f.wins(time.Second)
	var refused atomic.Int64
	s, err := New(f.client("standby", 0), WithLogger(slog.New(slog.DiscardHandler)),
		WithObserver(&Observer{Skipped: func(e TickEvent) {
			if errors.Is(e.Err, ErrTickTaken) {
				refused.Add(1)
			}
		}}))
	if err != nil {
		f.Fatal(err)
	}
	j, err := s.Add("tick", everySecond(), func(context.Context, Tick) error {
		f.Error("the standby ran a tick")
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	s.Start()
	s.clock.mu.Lock()
	s.clock.ahead -= late
	s.clock.mu.Unlock()
	return standby{job: j, refused: &refused, stop: func() { _ = s.Shutdown(context.Background()) }}
}

// wins makes somebody win each tick, without a scheduler.
func (f *fleet) wins(interval time.Duration) {
	c := f.claimer("winner", "tick")
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for at := gridFloor(time.Now(), interval).Add(interval); ; at = at.Add(interval) {
			if !c.sleep(ctx, time.Until(at)) {
				return
			}
			g, err := c.claim(ctx, newDue(at, at.Add(interval), 0))
			if err != nil {
				f.Errorf("the winner: %v", err)
				continue
			}
			_ = g.lock.Unlock(ctx)
		}
	})
	f.Cleanup(func() { cancel(); ended.Wait() })
}

// A plain standby is one with gocron's own scheduler.
type plainStandby struct {
	standby
	scheduler gocron.Scheduler
}

// gocron makes a scheduler of gocron's with that locker, and counts what is refused.
func (f *fleet) gocron(l gocron.Locker) plainStandby {
	f.Helper()
	var refused atomic.Int64
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(countingLocker{l, &refused}))
	if err != nil {
		f.Fatal(err)
	}
	j, err := s.NewJob(everySecond(), gocron.NewTask(func() { f.Error("the standby ran a tick") }),
		gocron.WithName("tick"))
	if err != nil {
		f.Fatal(err)
	}
	return plainStandby{scheduler: s,
		standby: standby{job: j, refused: &refused, stop: func() { _ = s.Shutdown() }}}
}

// countingLocker counts the ticks that another replica has.
type countingLocker struct {
	gocron.Locker
	refused *atomic.Int64
}

func (l countingLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	got, err := l.Locker.Lock(ctx, job)
	if errors.Is(err, redlock.ErrHeld) {
		l.refused.Add(1)
	}
	return got, err
}
