package redisproc

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestNodesDieWithTheProgramThatStartedThem(t *testing.T) {
	t.Parallel()
	Require(t)
	// A parent of its own, which is killed and so cannot end its children itself.
	temp := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "REDISPROC_TEST_PARENT=1", "TMPDIR="+temp)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // killed, as it should be
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || readErr != nil {
		t.Fatalf("the parent said %q (%v)", line, readErr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := poll(ctx, func() (bool, error) { return ended(pid), nil }); err != nil {
		t.Errorf("redis-server %d outlived its parent: %v", pid, err)
	}
}

// ended reports whether a process that is not our child is gone, or a zombie that nobody has
// waited for yet.
func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}
