package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// nobody is an address that refuses connections.
func nobody(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// closeIn closes a crew, and returns what it says; to be ended by force is a fault.
func closeIn(t *testing.T, c *crew, most time.Duration) error {
	began := time.Now()
	err := c.close()
	if took := time.Since(began); took > most {
		t.Errorf("the processes ended after %v, want at most %v", took, most)
	}
	return err
}

func named(t *testing.T, name string) *peer {
	p, err := peerNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAMembersFailureNamesItsLibrary(t *testing.T) {
	t.Parallel()
	p := named(t, "redislock (one node)")
	c, err := openCrew(t.Context(), p, []string{nobody(t)}, 3, 2)
	if err == nil || !strings.Contains(err.Error(), p.name+", process 1: ") {
		t.Errorf("got %v, want an error of %s, process 1", err, p.name)
	}
	if err := closeIn(t, c, endingTime/2); err != nil {
		t.Error(err)
	}
}

func TestAMemberEndsWithItsInput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // before any process can have begun to answer
	c, err := openCrew(ctx, named(t, "redsync"), []string{nobody(t)}, 1, 1)
	if err == nil || !strings.Contains(err.Error(), "redsync, process 1: no answer") {
		t.Errorf("got %v, want that there was no answer", err)
	}
	if err := closeIn(t, c, endingTime/2); err != nil {
		t.Error(err)
	}
}

func TestAKilledMemberIsAnErrorOfItsLibrary(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	nodes, err := redisproc.Start(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	p := named(t, "redislock (one node)")
	c, err := openCrew(t.Context(), p, nodes.Addrs(), 2, 2)
	if err != nil {
		t.Fatal(err, c.close())
	}
	if err := c.members[1].cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := c.stop(t.Context()); err == nil || !strings.Contains(err.Error(),
		p.name+", process 2: ") {
		t.Errorf("got %v, want an error of %s, process 2", err, p.name)
	}
	if err := closeIn(t, c, endingTime/2); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want that it was killed", err)
	}
}
