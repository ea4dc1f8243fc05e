package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/integration"
	"github.com/quorumlock/quorumlock/redlock"
)

const (
	nodes    = 5
	replicas = 3
)

// A stage is the nodes, the replicas with ways of their own to them, and all that was written down.
type stage struct {
	cluster *integration.Cluster
	ways    []integration.Ways // by replica
	dice    *rand.Rand
	reading sync.WaitGroup

	mu      sync.Mutex // guards what follows
	actors  [replicas]*actor
	starts  [replicas]int // how often each was started
	ready   map[string]bool
	records []record
	faults  []fault
}

// An actor is a replica's process.
type actor struct {
	name  string
	cmd   *exec.Cmd
	stdin interface{ Close() error }
}

func newStage(ctx context.Context, seed uint64) (*stage, error) {
	c, err := integration.Start(ctx, nodes, integration.WithClock())
	if err != nil {
		return nil, err
	}
	s := &stage{cluster: c, dice: rand.New(rand.NewPCG(seed, 0)), ready: map[string]bool{}}
	for range replicas {
		ways, err := c.Ways()
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		s.ways = append(s.ways, ways)
	}
	// The nodes have just been made: no lock can have been forgotten.
	client, err := redlock.New(redlock.Config{Addrs: c.Addrs(), TTL: ttl})
	if err == nil {
		err = errors.Join(client.Admit(ctx), client.Close())
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
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
	defer s.mu.Unlock()
	s.starts[i]++
	name := fmt.Sprintf("web-%d.%d", i+1, s.starts[i])
	cmd := exec.Command(os.Args[0], replicaMode, "-name", name,
		"-addrs", strings.Join(s.ways[i].Addrs(), ","))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.actors[i] = &actor{name: name, cmd: cmd, stdin: stdin}
	s.reading.Go(func() { // ends with the process
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r record
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				s.note(r)
			}
		}
		_ = cmd.Wait() // it may have been killed
	})
	return nil
}

func (s *stage) note(r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Kind == "ready" {
		s.ready[r.Replica] = true
		return
	}
	s.records = append(s.records, r)
}

// endReplicas lets all come to their end, or kills them.
func (s *stage) endReplicas() {
	s.mu.Lock()
	for _, a := range s.actors {
		if a != nil {
			a.stdin.Close()
			time.AfterFunc(10*time.Second, func() { _ = a.cmd.Process.Kill() }) // no use if it ended
		}
	}
	s.mu.Unlock()
	s.reading.Wait()
}

// close ends everything. It may be called twice.
func (s *stage) close() error {
	s.endReplicas()
	return s.cluster.Close()
}
