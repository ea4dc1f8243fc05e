package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// StepClock moves the node's wall clock forward by d, or back if d is negative, on top of earlier
// steps. Its monotonic clock goes on as it did. The offset outlives restarts. The cluster must have
// been started WithClock.
func (n *Node) StepClock(d time.Duration) error {
	return n.change("step the clock", func(ctx context.Context) error {
		if !n.settings.clock {
			return errors.New("started without WithClock")
		}
		// In place and of one length, so that a reader sees the old or the new number: "1<>" does
		// not empty the file first.
		code, out, err := n.container.Exec(ctx, []string{"sh", "-c",
			fmt.Sprintf("printf '%%s' '%s' 1<>%s", clockText(n.offset+d), clockFile)})
		if err == nil && code != 0 {
			text, _ := io.ReadAll(out)
			err = fmt.Errorf("status %d: %s", code, text)
		}
		if err == nil {
			n.offset += d
		}
		return err
	})
}

// clockText is what the shim reads: nanoseconds.
func clockText(offset time.Duration) []byte { return fmt.Appendf(nil, "%+020d\n", int64(offset)) }

// compiledShim compiles the shim of internal/redisproc, once per program, for images that do not
// have it.
var compiledShim = sync.OnceValues(func() ([]byte, error) {
	_, here, _, _ := runtime.Caller(0)
	source := filepath.Join(filepath.Dir(here), "..", "internal", "redisproc", "shim", "clock.c")
	dir, err := os.MkdirTemp("", "integration-shim-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	object := filepath.Join(dir, "clock.so")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	out, err := exec.Command(cc, "-O2", "-shared", "-fPIC", "-o", object, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("integration: compile the clock shim: %w\n%s", err, out)
	}
	return os.ReadFile(object)
})
