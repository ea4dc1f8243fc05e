package redisproc

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// ErrNoCompiler says that WithClock found no C compiler. Nothing was started. Install gcc, or do
// without stepped clocks.
var ErrNoCompiler = errors.New("redisproc: no C compiler")

//go:embed shim/clock.c
var clockSource []byte

// StepClock moves the node's wall clock forward by d, or back if d is negative, on top of
// earlier steps. What the node answers next is by the new clock; its monotonic clock goes on as
// it did. The offset outlives a Restart: it is the machine's clock that was stepped. Start must
// have been told WithClock.
func (n *Node) StepClock(d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.settings.clock {
		return n.wrap("step the clock", errors.New("started without WithClock"))
	}
	if err := n.writeClock(n.offset + d); err != nil {
		return n.wrap("step the clock", err)
	}
	n.offset += d
	return nil
}

// writeClock overwrites the offset in place: one write of a fixed length, so that a reader sees
// the old or the new number.
func (n *Node) writeClock(offset time.Duration) error {
	f, err := os.OpenFile(n.homeFile("clock"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%+020d\n", int64(offset))
	return errors.Join(err, f.Close())
}

// installClock puts the shim and a first offset of zero beside the node's configuration.
func (n *Node) installClock() error {
	shim, err := clockShim()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(n.homeFile("clock.so"), shim, 0o700), n.writeClock(0))
}

// clockEnv is what makes a redis-server use the shim.
func (n *Node) clockEnv() []string {
	if !n.settings.clock {
		return nil
	}
	return []string{
		"LD_PRELOAD=" + n.homeFile("clock.so"),
		"QUORUMLOCK_CLOCK_FILE=" + n.homeFile("clock"),
	}
}

// clockShim compiles the shim once per program and keeps the result in memory, so that no file
// outlives the nodes.
var clockShim = sync.OnceValues(func() ([]byte, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("redisproc: WithClock: %w on %s", errors.ErrUnsupported, runtime.GOOS)
	}
	cc, err := findCompiler()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redisproc-shim-")
	if err != nil {
		return nil, err
	}
	shim, err := compileShim(cc, dir)
	return shim, errors.Join(err, os.RemoveAll(dir))
})

func compileShim(cc, dir string) ([]byte, error) {
	source, object := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command(cc, "-O2", "-Wall", "-shared", "-fPIC", "-o", object, source).
		CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("redisproc: WithClock: %s: %w\n%s", cc, err, out)
	}
	return os.ReadFile(object)
}

// findCompiler looks for the compiler that CC names, then for the usual ones.
func findCompiler() (string, error) {
	for _, name := range []string{os.Getenv("CC"), "gcc", "cc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: WithClock needs one: install it (Debian and Ubuntu: apt-get install "+
		"gcc libc6-dev) or set CC", ErrNoCompiler)
}
