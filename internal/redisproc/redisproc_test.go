//go:build unix

package redisproc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// do sends a command that must succeed.
func do(t *testing.T, n *redisproc.Node, args ...any) any {
	t.Helper()
	answer, err := n.Do(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer
}

// must fails the test on an error of a step that is not itself tested.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// keys returns how many keys the node has.
func keys(t *testing.T, n *redisproc.Node) int64 {
	t.Helper()
	size, ok := do(t, n, "DBSIZE").(int64)
	if !ok {
		t.Fatal("DBSIZE is no number")
	}
	return size
}

// gone reports whether there is no process of this id any more.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// eventually waits for a condition that nothing signals.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestNodesRunSideBySideEachOnItsOwn(t *testing.T) {
	t.Parallel()
	nodes := redisproc.ForTest(t, 3)
	seen := map[any]bool{}
	for _, n := range nodes {
		for _, mark := range []any{n.Addr(), n.Dir(), n.PID()} {
			if seen[mark] {
				t.Errorf("two nodes share %v", mark)
			}
			seen[mark] = true
		}
		do(t, n, "SET", "k", n.Addr())
	}
	for i, n := range nodes {
		if got := do(t, n, "GET", "k"); got != n.Addr() || nodes.Addrs()[i] != n.Addr() {
			t.Errorf("node %s: got %v", n.Addr(), got)
		}
	}
}

func TestCloseLeavesNoProcessAndNoFile(t *testing.T) {
	t.Parallel()
	nodes := redisproc.ForTest(t, 2)
	pids := []int{nodes[0].PID(), nodes[1].PID()}
	must(t, nodes[1].Freeze())
	must(t, nodes.Close(), nodes.Close())
	for i, n := range nodes {
		if !gone(pids[i]) {
			t.Errorf("process %d is still there", pids[i])
		}
		if _, err := os.Stat(filepath.Dir(n.Dir())); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("files of %s: got %v, want none", n.Addr(), err)
		}
		if n.Restart(false) == nil {
			t.Error("Restart after Close: got no error")
		}
	}
}

func TestNothingIsWrittenToDiskByDefault(t *testing.T) {
	t.Parallel()
	n := redisproc.ForTest(t, 1)[0]
	do(t, n, "SET", "k", "v")
	must(t, n.Restart(false))
	if got := keys(t, n); got != 0 {
		t.Errorf("after a restart: got %d keys, want 0", got)
	}
	left, err := os.ReadDir(n.Dir())
	must(t, err)
	if len(left) > 0 {
		t.Errorf("files in the working directory: got %v, want none", left)
	}
}

func TestRestartKeepsOrEmptiesWhatTheServerWrote(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config string
		end    func(*redisproc.Node) error
		empty  bool
		want   int64
	}{
		"appendonly, stopped, kept":    {"appendonly yes", (*redisproc.Node).Stop, false, 1},
		"appendonly, killed, kept":     {"appendonly yes\nappendfsync always", (*redisproc.Node).Kill, false, 1},
		"appendonly, stopped, emptied": {"appendonly yes", (*redisproc.Node).Stop, true, 0},
		"save, stopped, kept":          {"save 3600 1", (*redisproc.Node).Stop, false, 1},
		"save, killed, lost":           {"save 3600 1", (*redisproc.Node).Kill, false, 0},
		"appendonly, running, kept":    {"appendonly yes", func(*redisproc.Node) error { return nil }, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := redisproc.ForTest(t, 1, redisproc.WithConfig(strings.Split(tc.config, "\n")...))[0]
			addr, pid := n.Addr(), n.PID()
			do(t, n, "SET", "k", "v")
			must(t, tc.end(n), n.Restart(tc.empty))
			if got := keys(t, n); got != tc.want {
				t.Errorf("keys: got %d, want %d", got, tc.want)
			}
			if n.Addr() != addr || n.PID() == pid || !gone(pid) {
				t.Errorf("got %s process %d, want %s and another process than %d",
					n.Addr(), n.PID(), addr, pid)
			}
		})
	}
}

func TestAStoppedNodeRefusesConnections(t *testing.T) {
	t.Parallel()
	n := redisproc.ForTest(t, 1)[0]
	for name, end := range map[string]func() error{"Stop": n.Stop, "Kill": n.Kill} {
		must(t, n.Restart(false), end(), end())
		if n.PID() != 0 {
			t.Errorf("%s: got process %d, want none", name, n.PID())
		}
		conn, err := net.Dial("tcp", n.Addr())
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after %s: got %v, want connection refused", name, err)
		}
		if n.Freeze() == nil || n.Thaw() == nil {
			t.Errorf("after %s: Freeze and Thaw succeeded on nothing", name)
		}
	}
}

func TestAFrozenNodeAnswersNothingUntilThawed(t *testing.T) {
	t.Parallel()
	n := redisproc.ForTest(t, 1)[0]
	must(t, n.Freeze())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := n.Do(ctx, "SET", "k", "v"); err == nil {
		t.Error("a frozen node answered")
	}
	must(t, n.Thaw())
	do(t, n, "PING")
	must(t, n.Freeze(), n.Stop())
	if n.PID() != 0 {
		t.Errorf("Stop of a frozen node: got process %d, want none", n.PID())
	}
	must(t, n.Restart(true))
	do(t, n, "PING")
}

func TestAReplicaFollowsAlsoAfterARestartUntilPromoted(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redisproc.Option{
		"open":     nil,
		"password": {redisproc.WithPassword("sesame")},
		"acl":      {redisproc.WithACL("user default off")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := redisproc.ForTest(t, 2, opts...)
			primary, replica := nodes[0], nodes[1]
			do(t, primary, "SET", "k", "v")
			must(t, replica.ReplicaOf(primary))
			if got := do(t, replica, "GET", "k"); got != "v" {
				t.Errorf("on the replica: got %v, want v", got)
			}
			must(t, replica.Restart(true))
			eventually(t, "the restarted replica has the key", func() bool {
				return keys(t, replica) == 1
			})
			must(t, replica.ReplicaOf(nil))
			do(t, replica, "SET", "k", "mine")
			if got := do(t, primary, "GET", "k"); got != "v" {
				t.Errorf("on the old primary: got %v, want v", got)
			}
		})
	}
}

func TestOneNodesClockIsStepped(t *testing.T) {
	t.Parallel()
	nodes := redisproc.ForTest(t, 2, redisproc.WithClock())
	for _, n := range nodes {
		do(t, n, "SET", "k", "v", "PX", 30_000)
	}
	must(t, nodes[0].StepClock(20*time.Second))
	if got := pttl(t, nodes[0]); got <= 0 || got > 10_000 {
		t.Errorf("20 s later: got %d ms left, want at most 10,000", got)
	}
	if got := pttl(t, nodes[1]); got < 15_000 {
		t.Errorf("on the other node: got %d ms left, want about 30,000", got)
	}
	must(t, nodes[0].StepClock(-10*time.Second))
	if got := pttl(t, nodes[0]); got <= 10_000 || got > 20_000 {
		t.Errorf("10 s back: got %d ms left, want at most 20,000", got)
	}
	must(t, nodes[0].StepClock(25*time.Second))
	if got := pttl(t, nodes[0]); got != -2 {
		t.Errorf("35 s later: got %d, want -2 (no key)", got)
	}
	must(t, nodes[0].Restart(true))
	if got := skew(t, nodes[0]); got < 34*time.Second || got > 36*time.Second {
		t.Errorf("offset after a restart: got %v, want 35 s", got)
	}
}

func pttl(t *testing.T, n *redisproc.Node) int64 {
	t.Helper()
	left, ok := do(t, n, "PTTL", "k").(int64)
	if !ok {
		t.Fatal("PTTL is no number")
	}
	return left
}

// skew is how far the node's clock, as a script reads it, is ahead of ours.
func skew(t *testing.T, n *redisproc.Node) time.Duration {
	t.Helper()
	seconds, ok := do(t, n, "EVAL", "return tonumber(redis.call('TIME')[1])", 0).(int64)
	if !ok {
		t.Fatal("TIME is no number")
	}
	return time.Until(time.Unix(seconds, 0))
}

func TestAClockThatCannotBeSteppedSaysSo(t *testing.T) {
	t.Parallel()
	n := redisproc.ForTest(t, 1)[0]
	if err := n.StepClock(time.Second); err == nil || !strings.Contains(err.Error(), "WithClock") {
		t.Errorf("got %v, want an error that names WithClock", err)
	}
}

func TestUsersOfTheACLFileHaveTheirRights(t *testing.T) {
	t.Parallel()
	n := redisproc.ForTest(t, 1, redisproc.WithACL("user default off",
		"user app on >secret ~app:* +get"))[0]
	if got := do(t, n, "ACL", "DRYRUN", "app", "GET", "app:k"); got != "OK" {
		t.Errorf("GET app:k: got %v, want OK", got)
	}
	if got := do(t, n, "ACL", "DRYRUN", "app", "DEL", "app:k"); got == "OK" {
		t.Error("DEL app:k: allowed")
	}
}

func TestConfigurationThatWouldBreakANodeIsRefused(t *testing.T) {
	t.Parallel()
	nodes, err := redisproc.Start(t.Context(), 1,
		redisproc.WithConfig("requirepass x", "PORT 1", "maxmemory 2mb"),
		redisproc.WithPassword("x"), redisproc.WithACL("user default off"))
	if nodes != nil || err == nil {
		t.Fatalf("got %v, %v, want an error", nodes, err)
	}
	for _, part := range []string{"requirepass", "PORT", "one or the other"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want it to name %q", err, part)
		}
	}
	if _, err := redisproc.Start(t.Context(), 0); err == nil {
		t.Error("0 nodes: got no error")
	}
}

func TestAServerThatDoesNotStartIsQuoted(t *testing.T) {
	t.Parallel()
	redisproc.ForTest(t, 1) // skips where there is no server
	_, err := redisproc.Start(t.Context(), 1, redisproc.WithConfig("no-such-directive yes"))
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("got %v, want the server's own words", err)
	}
}

func TestACancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	redisproc.ForTest(t, 1) // skips where there is no server
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	nodes, err := redisproc.Start(ctx, 2)
	if nodes != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want context.Canceled", nodes, err)
	}
}

func TestRestartWaitsForItsPort(t *testing.T) {
	t.Parallel()
	n := redisproc.ForTest(t, 1)[0]
	must(t, n.Stop())
	stranger, err := net.Listen("tcp4", n.Addr())
	must(t, err)
	restarted := make(chan error, 1)
	go func() { restarted <- n.Restart(false) }()
	eventually(t, "the server finds its port taken", func() bool {
		return strings.Contains(n.Log(), "Address already in use")
	})
	must(t, stranger.Close(), <-restarted)
	do(t, n, "PING")
}

func TestFindSaysWhatToDo(t *testing.T) {
	t.Setenv(redisproc.ServerVariable, "/nonexistent/redis-server")
	if _, err := redisproc.Find(); !errors.Is(err, redisproc.ErrNoServer) ||
		!strings.Contains(err.Error(), redisproc.ServerVariable) {
		t.Errorf("named: got %v, want ErrNoServer naming the variable", err)
	}
	t.Setenv(redisproc.ServerVariable, "")
	t.Setenv("PATH", t.TempDir())
	if _, err := redisproc.Find(); !errors.Is(err, redisproc.ErrNoServer) ||
		!strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("not on PATH: got %v, want ErrNoServer and how to install", err)
	}
}
