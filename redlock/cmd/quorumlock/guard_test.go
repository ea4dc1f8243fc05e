package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// maxTTLs are what the nodes have of their users' MaxTTL; "" where there is none.
func maxTTLs(t *testing.T, nodes redisproc.Nodes) (all []string) {
	t.Helper()
	for _, n := range nodes {
		answer, err := n.Do(t.Context(), "HGET", "ql:node", "max")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := answer.(string)
		all = append(all, text)
	}
	return all
}

// TestLookingWritesNothing: neither may a node that nobody uses begin to wait by it, nor may the
// command's own TTL become everybody's MaxTTL.
func TestLookingWritesNothing(t *testing.T) {
	t.Parallel()
	nodes := redisproc.ForTest(t, 3)
	look := func() {
		call(t, nodes.Addrs(), "inspect", "report").want(t, exitOK, "report: free")
		call(t, nodes.Addrs(), "watch", "report", "-for", "100ms", "-every", "10ms").want(t, exitOK)
		call(t, nodes.Addrs(), "free", "report").want(t, exitNotHeld)
	}
	look()
	call(t, nodes.Addrs(), "nodes").want(t, exitNoQuorum, "nobody has asked it")
	for _, n := range nodes {
		if keys, err := n.Do(t.Context(), "DBSIZE"); err != nil || fmt.Sprint(keys) != "0" {
			t.Errorf("%v keys after a look, %v", keys, err)
		}
	}

	// Somebody with a short MaxTTL begins to use them.
	c := user(t, redlock.Config{Addrs: nodes.Addrs(), TTL: time.Second})
	c.Nodes(t.Context())
	want := fmt.Sprint([]string{"1000", "1000", "1000"})
	look()
	call(t, nodes.Addrs(), "nodes", "-timeout", "1m") // they may wait, or vote by now
	if got := fmt.Sprint(maxTTLs(t, nodes)); got != want {
		t.Errorf("MaxTTL on the nodes after a look: %s, want %s", got, want)
	}
	call(t, nodes.Addrs(), "admit").want(t, exitOK, "yes")
	if got := fmt.Sprint(maxTTLs(t, nodes)); got != want {
		t.Errorf("MaxTTL on the nodes after admit: %s, want %s", got, want)
	}
	call(t, nodes.Addrs(), "nodes").want(t, exitOK, "3 of 3 nodes vote", "1s")
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	nodes := redisproc.ForTest(t, 3)
	addrs := nodes.Addrs()
	got := call(t, addrs, "admit", addrs[0], addrs[1], "-json", "-max-ttl", "30s")
	got.want(t, exitOK)
	if lines := objects(t, got.out); len(lines) != 2 || lines[0]["admitted"] != true ||
		lines[1]["node"] != addrs[1] {
		t.Errorf("got %v", lines)
	}
	if got := fmt.Sprint(maxTTLs(t, nodes)); got != "[30000 30000 ]" {
		t.Errorf("MaxTTL on the nodes: %s, want 30 s on two", got)
	}
	call(t, addrs, "nodes").want(t, exitOK, "2 of 3 nodes vote", "30s")
	// The third is new: it gets the MaxTTL that the others have, not the command's.
	call(t, addrs, "admit", addrs[2]).want(t, exitOK)
	if got := fmt.Sprint(maxTTLs(t, nodes)); got != "[30000 30000 30000]" {
		t.Errorf("MaxTTL on the nodes: %s, want 30 s on all", got)
	}
	call(t, addrs, "admit", "-max-ttl", "5s").want(t, exitOK)
	if got := fmt.Sprint(maxTTLs(t, nodes)); got != "[5000 5000 5000]" {
		t.Errorf("MaxTTL on the nodes: %s, want the 5 s that were asked for", got)
	}
	c := user(t, redlock.Config{Addrs: addrs, TTL: 4 * time.Second})
	take(t, c, "report")

	dead := append(addrs[:2:2], "127.0.0.1:1")
	call(t, dead, "admit").want(t, exitOther, "yes", "no", "connection refused")
}
