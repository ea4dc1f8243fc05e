package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/integration/internal/monotonic"
	"github.com/quorumlock/quorumlock/redlock"
)

// The faults of histories, and the histories.

// historyTTL is short, so that much happens. A node's answer may take a quarter of it.
const historyTTL = 800 * time.Millisecond

// historyTimeout bounds one history, of which a busy machine and a majority that starts empty again
// and again make a long one.
const historyTimeout = 2 * time.Minute

// What a history has to have to be worth a check.
const (
	leastOperations = 1000
	leastHandOvers  = 20
	leastFaults     = 5
	leastContended  = 0.3
)

func (t tally) isWorthACheck() bool {
	return t.operations >= leastOperations && t.handOvers >= leastHandOvers &&
		t.faults >= leastFaults && float64(t.contended) >= leastContended*float64(t.tries)
}

// A stage is what histories are played on: nodes, and processes with ways of their own to them.
type stage struct {
	*rig
	ways    []Ways // by process
	random  *rand.Rand
	mu      sync.Mutex // guards history and actors
	history history
	actors  []*actor
	names   []string
	spawned sync.WaitGroup // readers of processes
}

// An actor is a process of believers.
type actor struct {
	cmd   *exec.Cmd
	stdin interface{ Close() error }
}

const processes, clientsEach = 3, 3

// spawn starts process number i, or starts it anew.
func (s *stage) spawn(i int) {
	s.Helper()
	var numbers []int
	for j := range clientsEach {
		numbers = append(numbers, i*clientsEach+j)
	}
	text, err := json.Marshal(task{Addrs: s.ways[i].Addrs(), Names: s.names, Clients: numbers,
		Seed: s.random.Uint64(), TTL: historyTTL})
	s.must(err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestBeliever$")
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	stdin, err := cmd.StdinPipe()
	s.must(err)
	out, err := cmd.StdoutPipe()
	s.must(err)
	cmd.SysProcAttr = childAttr()
	started := make(chan error)
	s.spawned.Go(func() { s.run(i, &actor{cmd: cmd, stdin: stdin}, out, started) })
	s.must(<-started)
}

// run starts the process, tells so, and takes in what it writes until it is gone.
func (s *stage) run(i int, a *actor, out io.Reader, started chan<- error) {
	// Linux sends the parent's death signal when the thread that forked ends, not when the program
	// does: this thread stays with the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := a.cmd.Start(); err != nil {
		started <- err
		return
	}
	s.mu.Lock()
	s.actors[i] = a
	s.mu.Unlock()
	started <- nil
	err := readEntries(out, func(e entry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.history.entries = append(s.history.entries, e)
	})
	_ = a.cmd.Wait() // it may have been killed
	if err != nil {
		s.Error(err)
	}
}

func (s *stage) signal(i int, what syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.actors[i].cmd.Process.Signal(what)
}

// A misfortune is one kind of fault: it begins, and later it is over.
type misfortune struct {
	what  string
	begin func(s *stage, node, process int) error
	end   func(s *stage, node, process int) error
}

// misfortunes are those under which exclusion and growing tokens are promised. Clocks are stepped
// on one node only: a majority's step is no fault that exclusion survives (docs/guarantees.md).
var misfortunes = []misfortune{
	{"node killed, started empty",
		func(s *stage, n, _ int) error { return s.Nodes[n].Kill() },
		func(s *stage, n, _ int) error { return s.Nodes[n].StartEmpty() }},
	{"node stopped, started with its data",
		func(s *stage, n, _ int) error { return s.Nodes[n].Stop() },
		func(s *stage, n, _ int) error { return s.Nodes[n].Start() }},
	{"three nodes killed, started empty",
		func(s *stage, n, _ int) error {
			return errors.Join(s.Nodes[n].Kill(), s.Nodes[(n+1)%5].Kill(), s.Nodes[(n+2)%5].Kill())
		},
		func(s *stage, n, _ int) error {
			return errors.Join(s.Nodes[n].StartEmpty(), s.Nodes[(n+1)%5].StartEmpty(),
				s.Nodes[(n+2)%5].StartEmpty())
		}},
	{"two nodes frozen",
		func(s *stage, n, _ int) error {
			return errors.Join(s.Nodes[n].Pause(), s.Nodes[(n+1)%5].Pause())
		},
		func(s *stage, n, _ int) error {
			return errors.Join(s.Nodes[n].Unpause(), s.Nodes[(n+1)%5].Unpause())
		}},
	{"a process cut from three nodes", cutWays(3, (*Way).Cut), healWays},
	{"a process loses three nodes' replies", cutWays(3, (*Way).LoseReplies), healWays},
	{"a process loses requests to two nodes", cutWays(2, (*Way).LoseRequests), healWays},
	{"a process' ways are slow",
		cutWays(5, func(w *Way) error {
			return w.Slow(60*time.Millisecond, 40*time.Millisecond)
		}), healWays},
	{"connections of all dropped", func(s *stage, _, process int) error {
		var errs []error
		for _, w := range s.ways[process] {
			errs = append(errs, w.Drop())
		}
		return errors.Join(errs...)
	}, nil},
	{"the last node's clock stepped an hour ahead, and back",
		func(s *stage, _, _ int) error { return s.Nodes[4].StepClock(time.Hour) },
		func(s *stage, _, _ int) error { return s.Nodes[4].StepClock(-time.Hour) }},
	{"the last node's clock stepped back by a second, and put right",
		func(s *stage, _, _ int) error { return s.Nodes[4].StepClock(-time.Second) },
		func(s *stage, _, _ int) error { return s.Nodes[4].StepClock(time.Second) }},
	{"scripts flushed, and all data of a node",
		func(s *stage, n, _ int) error {
			_, err := s.Nodes[n].Do(s.Context(), "FLUSHALL")
			_, other := s.Nodes[(n+1)%5].Do(s.Context(), "SCRIPT", "FLUSH")
			return errors.Join(err, other)
		}, nil},
	{"a process frozen",
		func(s *stage, _, p int) error { return s.signal(p, syscall.SIGSTOP) },
		func(s *stage, _, p int) error { return s.signal(p, syscall.SIGCONT) }},
	{"a process killed, and started anew",
		func(s *stage, _, p int) error { return s.signal(p, syscall.SIGKILL) },
		func(s *stage, _, p int) error { s.spawn(p); return nil }},
}

func cutWays(count int, cut func(*Way) error) func(*stage, int, int) error {
	return func(s *stage, node, process int) error {
		var errs []error
		for i := range count {
			errs = append(errs, cut(s.ways[process][(node+i)%5]))
		}
		return errors.Join(errs...)
	}
}

func healWays(s *stage, _, process int) error {
	var errs []error
	for _, w := range s.ways[process] {
		errs = append(errs, w.Heal())
	}
	return errors.Join(errs...)
}

// strike lets one misfortune happen for a random time.
func (s *stage) strike(m misfortune) {
	s.Helper()
	node, process := s.random.IntN(5), s.random.IntN(processes)
	f := fault{what: fmt.Sprintf("%s (node %d, process %d)", m.what, node, process), begin: monotonic.Now()}
	s.must(m.begin(s, node, process))
	s.rest(historyTTL/4, 2*historyTTL)
	if m.end != nil {
		s.must(m.end(s, node, process))
	}
	f.end = monotonic.Now()
	exercised("histories: "+m.what, m.what)
	s.mu.Lock()
	s.history.faults = append(s.history.faults, f)
	s.mu.Unlock()
	s.rest(historyTTL/4, historyTTL)
}

// rest lets the processes go on for a random time.
func (s *stage) rest(least, most time.Duration) {
	time.Sleep(least + time.Duration(s.random.Int64N(int64(most-least))))
}

// play makes one history.
func (s *stage) play(number int) *history {
	s.Helper()
	s.history, s.actors = history{}, make([]*actor, processes)
	s.names = []string{fmt.Sprintf("h%d/a", number), fmt.Sprintf("h%d/b", number)}
	for i := range processes {
		s.spawn(i)
	}
	enough := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		t := s.history.tally()
		return t.isWorthACheck()
	}
	order := s.random.Perm(len(misfortunes))
	for i, end := 0, time.Now().Add(historyTimeout); !enough() && time.Now().Before(end); i++ {
		s.strike(misfortunes[order[i%len(order)]])
	}
	s.end()
	return &s.history
}

// end lets the processes come to their end, or kills them.
func (s *stage) end() {
	s.mu.Lock()
	for _, a := range s.actors {
		if a != nil {
			a.stdin.Close()
			time.AfterFunc(10*time.Second, func() { _ = a.cmd.Process.Kill() }) // no use if it ended
		}
	}
	s.mu.Unlock()
	s.spawned.Wait()
}

// TestHistories plays QUORUMLOCK_HISTORIES histories (6 by default) from a random seed, or
// QUORUMLOCK_SEED. Of one that is not legal it keeps the picture. It has the machine for itself, or
// there would be more time-outs in it than locks.
func TestHistories(t *testing.T) {
	count, seed := number(t, "QUORUMLOCK_HISTORIES", 6), number(t, "QUORUMLOCK_SEED", rand.Uint64()>>1)
	t.Logf("QUORUMLOCK_SEED=%d", seed)
	s := &stage{rig: on(t, 5, WithClock(), disk), random: rand.New(rand.NewPCG(seed, 0))}
	s.admitted(redlock.Config{TTL: historyTTL})
	for range processes {
		ways, err := s.Ways()
		s.must(err)
		s.ways = append(s.ways, ways)
	}
	t.Cleanup(s.end) // also of one that was left in the middle
	var sum tally
	for i := range int(count) {
		h := s.play(i)
		result, picture, err := h.check(fmt.Sprintf("seed-%d-history-%d", seed, i))
		s.must(err)
		got := h.tally()
		t.Logf("history %d: %v, %v", i, result, got)
		if result != porcupine.Ok {
			t.Fatalf("history %d of seed %d: porcupine says %v; picture: %s", i, seed, result, picture)
		}
		if !got.isWorthACheck() {
			t.Errorf("history %d has too little of something to be worth a check: %v", i, got)
		}
		sum.operations += got.operations
		sum.tries += got.tries
		sum.contended += got.contended
		sum.handOvers += got.handOvers
		sum.faults += got.faults
	}
	t.Logf("all %d: %v; none illegal", count, sum)
}

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
