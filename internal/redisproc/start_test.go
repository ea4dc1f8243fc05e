package redisproc

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

func TestMain(m *testing.M) {
	if os.Getenv("REDISPROC_TEST_PARENT") != "" {
		beParent()
	}
	os.Exit(m.Run())
}

// beParent starts a node, tells its process id and waits for its own end.
func beParent() {
	nodes, err := Start(context.Background(), 1)
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.Itoa(nodes[0].PID()) + "\n")
	select {}
}

func TestATakenPortIsTriedElsewhere(t *testing.T) {
	t.Parallel()
	taken, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := net.Listen("tcp4", taken.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()

	var calls atomic.Int32
	first := func(s *settings) {
		s.reserve = func() (*loopback.Port, error) {
			if calls.Add(1) == 1 {
				return taken, nil
			}
			return loopback.Reserve()
		}
	}
	n := ForTest(t, 1, first)[0]
	if n.Addr() == taken.Addr() || calls.Load() != 2 {
		t.Errorf("got %s after %d ports, want another than %s after 2", n.Addr(), calls.Load(),
			taken.Addr())
	}
}

func TestNoPortIsAnError(t *testing.T) {
	t.Parallel()
	Require(t)
	busy := errors.New("no port left")
	never := func(s *settings) {
		s.reserve = func() (*loopback.Port, error) { return nil, busy }
	}
	if _, err := Start(t.Context(), 2, never); !errors.Is(err, busy) {
		t.Errorf("got %v, want %v", err, busy)
	}
}

func TestWithoutACompilerTheClockSaysSo(t *testing.T) {
	t.Setenv("CC", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := findCompiler(); !errors.Is(err, ErrNoCompiler) ||
		!strings.Contains(err.Error(), "apt-get install gcc") {
		t.Errorf("got %v, want ErrNoCompiler and how to install", err)
	}
}

func TestAShimThatDoesNotCompileShowsTheCompilersWords(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("false")
	if err != nil {
		skip(t, err)
	}
	if _, err := compileShim(cc, t.TempDir()); err == nil || !strings.Contains(err.Error(), cc) {
		t.Errorf("got %v, want an error that names %s", err, cc)
	}
}
