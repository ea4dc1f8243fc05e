package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orphanMode is the first argument of a process that is a demo with one frozen replica.
const orphanMode = "demo-with-a-frozen-replica"

func init() { modes[orphanMode] = frozenDemo }

// frozenDemo tells the replica's process id, and stays until it is killed.
func frozenDemo([]string) int {
	s, err := newStage(options{nodes: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := s.start("frozen", 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	process := s.replicas[0].cmd.Process
	if err := process.Signal(stopSignal); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(process.Pid)
	select {}
}

func TestAFrozenReplicaDiesWithTheDemo(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0], orphanMode)
	// The replica has the demo's stderr: once nobody has it any more, both are gone.
	alive, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	parent.Stderr = stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = parent.Start()
	_ = stderr.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // killed, as it should be
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("the demo said %q (%v)", line, readErr)
	}
	if err := alive.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(alive)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("replica %d outlived the demo", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL) // it is alive, so the id is still its own
	} else if err != nil {
		t.Error(err)
	}
	if text := strings.TrimSpace(string(said)); text != "" {
		t.Errorf("stderr: %s", text)
	}
}
