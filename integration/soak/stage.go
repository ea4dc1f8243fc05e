package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/integration"
	"github.com/quorumlock/quorumlock/redlock"
)

const (
	nodes    = 5
	quorum   = nodes/2 + 1
	replicas = 3
)

// standing is how far the replicas' wall clocks are ahead of the nodes', whatever else happens.
var standing = [replicas]time.Duration{0, -7 * time.Second, 90 * time.Second}

// A stage is the nodes, the replicas with ways of their own to them, and all that was written down.
type stage struct {
	cluster *integration.Cluster
	ways    []integration.Ways // by replica
	at      map[string]int     // node by the address of a way
	dice    *rand.Rand
	reading sync.WaitGroup

	mu      sync.Mutex // guards what follows
	actors  [replicas]*actor
	starts  [replicas]int // how often each was started
	ready   map[string]bool
	records []record
	faults  []fault
	stalls  []stall
	doubts  []string // about the stage itself: then it proves nothing
}

// An actor is a replica's process.
type actor struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ahead time.Duration // of its wall clock, as it was told last
	clock chan struct{} // capacity 1: it has set its clock
}

func newStage(ctx context.Context, seed uint64) (*stage, error) {
	c, err := integration.Start(ctx, nodes, integration.WithClock())
	if err != nil {
		return nil, err
	}
	s := &stage{cluster: c, dice: rand.New(rand.NewPCG(seed, 0)), ready: map[string]bool{},
		at: map[string]int{}}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// connect makes the replicas' ways, and lets the nodes vote.
func (s *stage) connect(ctx context.Context) error {
	for range replicas {
		ways, err := s.cluster.Ways()
		if err != nil {
			return err
		}
		for i, addr := range ways.Addrs() {
			s.at[addr] = i
		}
		s.ways = append(s.ways, ways)
	}
	// The nodes have just been made: no lock can have been forgotten.
	client, err := redlock.New(redlock.Config{Addrs: s.cluster.Addrs(), TTL: ttl})
	if err != nil {
		return err
	}
	return errors.Join(client.Admit(ctx), client.Close())
}

// startReplicas starts all and waits until they say that they are ready.
func (s *stage) startReplicas(ctx context.Context) error {
	for i := range replicas {
		if err := s.startReplica(i); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		s.mu.Lock()
		all := len(s.ready) >= replicas
		s.mu.Unlock()
		if all {
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return fmt.Errorf("soak: replicas are not ready: %w", err)
		}
	}
}

// startReplica starts replica i, under a new name each time.
func (s *stage) startReplica(i int) error {
	s.mu.Lock()
	s.starts[i]++
	a := &actor{name: fmt.Sprintf("web-%d.%d", i+1, s.starts[i]), ahead: standing[i],
		clock: make(chan struct{}, 1)}
	s.mu.Unlock()
	a.cmd = exec.Command(os.Args[0], replicaMode, "-name", a.name, "-ahead", a.ahead.String(),
		"-addrs", strings.Join(s.ways[i].Addrs(), ","))
	a.cmd.Stderr = os.Stderr
	a.cmd.SysProcAttr = childAttr()
	stdin, err := a.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	a.stdin = stdin
	started := make(chan error)
	s.reading.Go(func() { s.run(i, a, out, started) })
	return <-started
}

// run starts the replica, tells so, and takes in what it writes until it is gone.
func (s *stage) run(i int, a *actor, out io.Reader, started chan<- error) {
	// Linux sends the parent's death signal when the thread that forked ends, not when the program
	// does: this thread stays with the replica.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := a.cmd.Start(); err != nil {
		started <- fmt.Errorf("soak: replica %s: %w", a.name, err)
		return
	}
	s.mu.Lock()
	s.actors[i] = a
	s.mu.Unlock()
	started <- nil
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) == nil { // else it was cut short by a kill
			s.note(a, r)
		}
	}
	_ = a.cmd.Wait() // it may have been killed
}

// note takes in a record.
func (s *stage) note(a *actor, r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.came = time.Now()
	for _, addr := range r.Silent {
		if i, ok := s.at[addr]; ok {
			r.silent = append(r.silent, i)
		} else {
			s.doubts = append(s.doubts, "no node is at "+addr)
		}
	}
	switch r.Kind {
	case isReady:
		s.ready[r.Replica] = true
	case isClock:
		const slack = 2 * time.Second // the record's way here, on a busy machine
		if off := time.UnixMilli(r.When).Sub(r.came) - a.ahead; off.Abs() > slack {
			s.doubts = append(s.doubts,
				fmt.Sprintf("%s's clock is %v beside what it was told", a.name, off))
		}
		select {
		case a.clock <- struct{}{}:
		default:
		}
	default:
		s.records = append(s.records, r)
	}
}

// setClock sets replica i's wall clock so much ahead of what it stands at, and waits until that is
// so.
func (s *stage) setClock(i int, ahead time.Duration) error {
	s.mu.Lock()
	a := s.actors[i]
	a.ahead = standing[i] + ahead
	to := a.ahead
	s.mu.Unlock()
	select {
	case <-a.clock: // of before
	default:
	}
	if _, err := fmt.Fprintln(a.stdin, to); err != nil {
		return err
	}
	select {
	case <-a.clock:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("soak: %s does not set its clock", a.name)
	}
}

// endReplicas lets all come to their end, or kills them.
func (s *stage) endReplicas(patience time.Duration) {
	s.mu.Lock()
	for _, a := range s.actors {
		if a != nil {
			a.stdin.Close()
			time.AfterFunc(patience, func() { _ = a.cmd.Process.Kill() }) // no use if it ended
		}
	}
	s.mu.Unlock()
	s.reading.Wait()
}

// close ends everything. It may be called twice.
func (s *stage) close() error {
	s.endReplicas(time.Second)
	return s.cluster.Close()
}
