package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Nodes are the nodes of one Start.
type Nodes []*Node

// Start starts count nodes side by side and waits until each of them answers. ctx bounds the
// start only; the nodes run until Close, or until this program ends (on Linux). Its errors are
// ErrNoServer, ErrNoCompiler, or say what the server said; then nothing is left running.
func Start(ctx context.Context, count int, opts ...Option) (Nodes, error) {
	s, err := collect(opts)
	if err != nil {
		return nil, err
	}
	if count < 1 {
		return nil, fmt.Errorf("redisproc: start %d nodes: at least one is needed", count)
	}
	server, err := Find()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	nodes, err := startAll(ctx, count, server, s)
	if err != nil {
		return nil, errors.Join(err, nodes.Close())
	}
	return nodes, nil
}

// Addrs returns the nodes' addresses in their order.
func (nn Nodes) Addrs() []string {
	addrs := make([]string, len(nn))
	for i, n := range nn {
		addrs[i] = n.Addr()
	}
	return addrs
}

// Close kills all nodes, waits until they are gone and removes their files. It may be called
// more than once.
func (nn Nodes) Close() error {
	var errs []error
	for _, n := range nn {
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}

// startAll returns the nodes that started, also beside an error.
func startAll(ctx context.Context, count int, server string, s settings) (Nodes, error) {
	all, errs := make(Nodes, count), make([]error, count)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i], errs[i] = startOne(ctx, server, s) })
	}
	wg.Wait()
	nodes := all[:0]
	for _, n := range all {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, errors.Join(errs...)
}

// portAttempts is how many ports a new node tries: where a port cannot be reserved, another
// program may be faster.
const portAttempts = 5

func startOne(ctx context.Context, server string, s settings) (*Node, error) {
	for attempt := 1; ; attempt++ {
		n, err := newNode(server, s)
		if err != nil {
			return nil, err
		}
		err = n.launch(ctx)
		if err == nil {
			return n, nil
		}
		err = errors.Join(n.wrap("start", err), n.close())
		if !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return nil, err
		}
	}
}

// newNode prepares port and files.
func newNode(server string, s settings) (*Node, error) {
	port, err := s.reserve()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "redisproc-")
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	n := &Node{settings: s, server: server, home: home, port: port}
	err = os.Mkdir(n.Dir(), 0o700)
	if s.clock {
		err = errors.Join(err, n.installClock())
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// errPortTaken says that somebody else listens on the node's port.
var errPortTaken = errors.New("port taken")

// launch starts the server and waits until it answers; if it does not, it is gone on return.
func (n *Node) launch(ctx context.Context) error {
	if err := n.writeConfig(); err != nil {
		return err
	}
	before := len(n.Log())
	p, err := n.spawn()
	if err != nil {
		return err
	}
	n.proc = p
	err = n.awaitReady(ctx, p)
	if err == nil {
		return nil
	}
	err = errors.Join(err, p.kill())
	if strings.Contains(n.Log()[before:], "Address already in use") {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return fmt.Errorf("%w; its log ends:\n%s", err, n.logTail())
}

// spawn starts the server with its output added to the log.
func (n *Node) spawn() (*process, error) {
	log, err := os.OpenFile(n.homeFile("log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(n.server, n.homeFile("redis.conf"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), n.clockEnv()...)
	cmd.SysProcAttr = childAttr()
	return spawn(cmd)
}
