package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// commandVariable makes the test's program the command, with its arguments.
const commandVariable = "QUORUMLOCK_PAIRS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestASignalLeavesNothing is about the program, whose end it is: its files, its servers, its status.
func TestASignalLeavesNothing(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for at, args := range map[string][]string{
			// New nodes give no vote for the time of a TTL: so long it waits for them.
			"while it waits for the nodes": {"-span", "1h"},
			"while it measures":            {"-span", "50ms", "-rounds", "100000", "-nodes", "1"},
		} {
			t.Run(sig.String()+" "+at, func(t *testing.T) {
				t.Parallel()
				signalled(t, sig, at == "while it measures", args)
			})
		}
	}
}

func signalled(t *testing.T, sig syscall.Signal, measuring bool, args []string) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), commandVariable+"=1", "TMPDIR="+dir)
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	lines := bufio.NewReader(told)
	if measuring {
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "round 1") {
			t.Errorf("it said %q, %v, want that the first round is over", line, err)
		}
	} else {
		serversRun(t, dir)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	signalledAt := time.Now()
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if took := time.Since(signalledAt); took > 20*time.Second {
		t.Errorf("it ended %v after the signal, want soon", took)
	}
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("it ended with status %d (%v), want 1", got, cmd.ProcessState)
	}
	if !strings.Contains(string(rest), "pairs: interrupted") {
		t.Errorf("it said %q, want that it was interrupted", rest)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// serversRun waits until all five servers have a log.
func serversRun(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if logs, _ := filepath.Glob(filepath.Join(dir, "*", "log")); len(logs) == 5 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no servers after 30 s")
}
