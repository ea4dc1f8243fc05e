//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// TestASignalLeavesNothing is about the program, whose end it is: its files, its processes, its status.
func TestASignalLeavesNothing(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	for _, tc := range []struct {
		form, at string
		group    bool // the signal reaches all processes, as a terminal's does
		sig      syscall.Signal
	}{
		{"short", "nodes run", false, syscall.SIGTERM},
		{"delay", "pairs, round 1", true, syscall.SIGINT},
		{"handoff", "hand-offs, round 1", true, syscall.SIGINT},
		{"handoff", "nodes run", false, syscall.SIGTERM},
	} {
		// One after the other: too many processes at once, and a first lock is refused for want of time.
		t.Run(tc.form+" "+tc.at, func(t *testing.T) {
			interrupt(t, tc.form, tc.at, tc.group, tc.sig)
		})
	}
}

func interrupt(t *testing.T, form, at string, group bool, sig syscall.Signal) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-form", form)
	cmd.Env = append(os.Environ(), commandVariable+"=1", "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := -cmd.Process.Pid // of its group
	end := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(all, syscall.SIGKILL) })
	defer end.Stop()
	lines := bufio.NewReader(told)
	for said, line := "", ""; !strings.Contains(line, at); said += line {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("it ended before %q: %v; it said:\n%s", at, err, said)
		}
	}
	to := cmd.Process.Pid
	if group {
		to = all
	}
	if err := syscall.Kill(to, sig); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("it ended with status %d (%v), want 130", got, cmd.ProcessState)
	}
	if !strings.Contains(string(rest), "bench: interrupted") {
		t.Errorf("it said %q, want that it was interrupted", rest)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := syscall.Kill(all, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("processes are left (%v)", err)
	}
}
