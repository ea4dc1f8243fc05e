package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// A Node is one redis-server, or the place where it was and will be again. All methods may be
// called concurrently; those that change the node wait for each other.
type Node struct {
	settings settings
	server   string // path of redis-server
	home     string // directory of everything about this node
	port     *loopback.Port

	mu      sync.Mutex    // guards what follows, over a whole start or stop
	proc    *process      // the latest; nil before the first start
	primary *Node         // followed, and to be followed again after Restart
	offset  time.Duration // of its wall clock
	frozen  bool
	closed  bool
}

// Addr returns "127.0.0.1:port". It stays the same for the node's life.
func (n *Node) Addr() string { return n.port.Addr() }

// Dir returns the server's working directory, which Restart may empty.
func (n *Node) Dir() string { return filepath.Join(n.home, "data") }

// PID returns the process' id, or 0 while there is none.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running() {
		return 0
	}
	return n.proc.pid()
}

// Log returns all that the server has written to its log, over restarts.
func (n *Node) Log() string {
	text, err := os.ReadFile(n.homeFile("log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}

// Stop asks the server to end (SIGTERM, a frozen one is thawed for it) and waits until it has;
// it writes its data if so configured. If it does not end in time, it is killed and that is an
// error. A node that does not run is left alone.
func (n *Node) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("stop", n.stop())
}

// Kill ends the server at once (SIGKILL), frozen or not, and waits until it is gone. A node that
// does not run is left alone.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("kill", n.kill())
}

// Restart starts the server again on the same port, with the data it wrote or, if empty is true,
// with none, and waits until it answers. A running one is stopped first, as by Stop. Note that
// without persistence (the default) a restarted server has no data either way.
func (n *Node) Restart(empty bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("restart", n.restart(empty))
}

// Freeze holds the server where it is (SIGSTOP): connections are accepted by the kernel, nothing
// is answered. It returns when the server stands still.
func (n *Node) Freeze() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("freeze", n.freeze())
}

// Thaw lets a frozen server go on (SIGCONT). It then works off what it was sent meanwhile.
func (n *Node) Thaw() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running() {
		return n.wrap("thaw", errNotRunning)
	}
	n.frozen = false
	return n.wrap("thaw", n.proc.signal(sigCont))
}

var (
	errNotRunning = errors.New("not running")
	errClosed     = errors.New("closed")
)

func (n *Node) running() bool { return n.proc != nil && n.proc.running() }

func (n *Node) stop() error {
	if !n.running() {
		return nil
	}
	err := n.proc.signal(syscall.SIGTERM)
	if n.frozen {
		err = errors.Join(err, n.proc.signal(sigCont))
		n.frozen = false
	}
	if err != nil || n.proc.waitFor(stopTimeout) {
		return err
	}
	return errors.Join(fmt.Errorf("had to be killed after %v", stopTimeout), n.kill())
}

func (n *Node) kill() error {
	n.frozen = false
	if !n.running() {
		return nil
	}
	return n.proc.kill()
}

func (n *Node) freeze() error {
	if !n.running() {
		return errNotRunning
	}
	if err := n.proc.signal(sigStop); err != nil {
		return err
	}
	n.frozen = true
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return poll(ctx, func() (bool, error) { return stopped(n.proc.pid()) })
}

func (n *Node) restart(empty bool) error {
	if n.closed {
		return errClosed
	}
	if err := n.stop(); err != nil {
		return err
	}
	if empty {
		if err := n.wipe(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// Where the port cannot be kept while the server is down, a passing connection may have it.
	return poll(ctx, func() (bool, error) {
		err := n.launch(ctx)
		if errors.Is(err, errPortTaken) && ctx.Err() == nil {
			return false, nil
		}
		return true, err
	})
}

func (n *Node) wipe() error {
	return errors.Join(os.RemoveAll(n.Dir()), os.Mkdir(n.Dir(), 0o700))
}

// close ends the server and removes all traces. It may be called twice.
func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.wrap("close", errors.Join(n.kill(), n.port.Close(), os.RemoveAll(n.home)))
}

func (n *Node) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redisproc: %s %s: %w", what, n.Addr(), err)
}

// logTail returns the end of the log, for messages.
func (n *Node) logTail() string {
	const most = 2000
	text := strings.TrimSpace(n.Log())
	if len(text) > most {
		text = "..." + text[len(text)-most:]
	}
	return text
}
