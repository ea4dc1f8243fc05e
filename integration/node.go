package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// faultTimeout bounds what is done to a node, the wait for the engine included.
const faultTimeout = time.Minute

// Labels of each container: the run, by which .ci/containers finds leftovers, and the node.
const (
	label     = "quorumlock.integration"
	nodeLabel = "quorumlock.integration.node"
)

//go:embed start.sh
var startScript string

// redisPort is where a server listens inside its container, unless it shares another's network.
const redisPort = 6379

func tcp(port int) string { return fmt.Sprintf("%d/tcp", port) }

// A Node is one redis-server in a container, behind a proxy. Its methods may be called
// concurrently; those that change it wait for each other.
type Node struct {
	*Way // of all clients that have no other

	settings settings
	id       string

	mu        sync.Mutex // guards what follows, over a whole change
	wires     []*wire
	container *testcontainers.DockerContainer
	mapped    string // where the engine has it; "" while it is down
	paused    bool
	offset    time.Duration // of its wall clock
	faults    []string      // that were done to it
	closed    bool
}

// startNode returns the node also beside an error, if there is something to be closed.
func startNode(ctx context.Context, image string, s settings) (*Node, error) {
	n := &Node{settings: s, id: strings.ToLower(rand.Text())}
	var err error
	if n.Way, err = n.newWay(); err != nil {
		return nil, err
	}
	texts, err := n.texts()
	if err != nil {
		return n, err
	}
	files, err := n.files(image)
	if err != nil {
		return n, err
	}
	if err := register(n); err != nil {
		return n, err
	}
	// Held over the whole start: a close meanwhile waits, and then finds the container.
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed { // by an interrupt, in the moment before
		return n, n.wrap("start", errors.New("closed"))
	}
	return n, n.wrap("start", n.create(ctx, image, texts, files))
}

// create makes the container, and starts it.
func (n *Node) create(
	ctx context.Context, image string, texts []string, files []testcontainers.ContainerFile,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Not given up in the middle: the engine would make the container, and nobody know of it.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	request := testcontainers.ContainerRequest{
		Image:              image,
		Entrypoint:         append([]string{"sh", "-c", startScript, "start.sh"}, texts...),
		Cmd:                append([]string{"--", configFile(n.id)}, n.settings.args...),
		ExposedPorts:       n.settings.exposed(),
		Labels:             map[string]string{label: os.Getenv("QUORUMLOCK_RUN"), nodeLabel: n.id},
		Files:              files,
		HostConfigModifier: n.settings.attach,
	}
	err := inTurn(ctx, func() error {
		got, err := testcontainers.GenericContainer(creating, testcontainers.GenericContainerRequest{
			ContainerRequest: request, Logger: quiet{}})
		if c, ok := got.(*testcontainers.DockerContainer); ok && c != nil {
			n.container = c // also beside an error
		}
		if err != nil {
			return err
		}
		return n.container.Start(ctx)
	})
	if err != nil {
		return err
	}
	return n.connect(ctx)
}

// exposed are the ports that are mapped: those of all who use this container's network.
func (s *settings) exposed() (ports []string) {
	if s.lender != nil {
		return nil
	}
	for _, port := range append([]int{s.port}, s.lent...) {
		ports = append(ports, tcp(port))
	}
	return ports
}

// attach leads the container's ports to 127.0.0.1, or gives it another container's network.
func (s *settings) attach(h *container.HostConfig) {
	if s.lender != nil {
		h.NetworkMode = container.NetworkMode("container:" + s.lender.container.ID)
		return
	}
	h.PortBindings = network.PortMap{}
	for _, port := range s.exposed() {
		h.PortBindings[network.MustParsePort(port)] =
			[]network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}
	}
}

// quiet is testcontainers' logger: what is worth knowing comes as an error.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// texts are the files that the node's start writes, each a path and its content. As arguments they
// cost nothing; a copy into a container costs the engine as much as half a start.
func (n *Node) texts() ([]string, error) {
	texts := []string{configFile(n.id), strings.Join(n.settings.config(), "\n") + "\n"}
	if n.settings.clock {
		texts = append(texts, clockFile, string(clockText(0)))
	}
	if ca := n.settings.ca; ca != nil {
		cert, key, err := ca.issue()
		if err != nil {
			return nil, err
		}
		texts = append(texts, home+"/ca.crt", string(ca.PEM()), home+"/node.crt", string(cert),
			home+"/node.key", string(key))
	}
	return texts, nil
}

// files are copied into the container: the clock's shim, where the image has none.
func (n *Node) files(image string) ([]testcontainers.ContainerFile, error) {
	if !n.settings.clock || strings.HasPrefix(image, ownImage+":") {
		return nil, nil
	}
	shim, err := compiledShim()
	if err != nil {
		return nil, err
	}
	return []testcontainers.ContainerFile{{Reader: bytes.NewReader(shim),
		ContainerFilePath: home + "/clock.so", FileMode: 0o755}}, nil
}

// connect asks where the container is now, waits until this very server answers there, leads the
// ways to it, and waits until it has its data.
func (n *Node) connect(ctx context.Context) error {
	at := n.container
	if lender := n.settings.lender; lender != nil {
		at = lender.container // there from the lender's start on
	}
	port, err := at.MappedPort(ctx, tcp(n.settings.port))
	if err != nil { // the server may have ended by now, and its ports with it
		return n.notReady(err)
	}
	n.mapped = net.JoinHostPort("127.0.0.1", port.Port())
	return n.awaitReady(ctx)
}

// lead leads all ways to where the server is.
func (n *Node) lead() error {
	var errs []error
	for _, w := range n.wires {
		errs = append(errs, w.lead(n.target()))
	}
	return errors.Join(errs...)
}

// target is where ways lead: to the mapped port, or nowhere while there is none.
func (n *Node) target() string {
	if n.mapped == "" {
		return nowhere
	}
	return n.mapped
}

// awaitReady waits until the server has its data and answers.
func (n *Node) awaitReady(ctx context.Context) error {
	var last error
	exited, led := false, false
	ready := func() bool {
		var answer any
		if answer, last = n.ask(ctx, n.mapped, "INFO"); last != nil {
			if state, err := n.container.State(ctx); err == nil && !state.Running {
				exited, last = true, fmt.Errorf("it ended with status %d", state.ExitCode)
			}
			return exited
		}
		info, _ := answer.(string)
		if !strings.Contains(info, "config_file:"+configFile(n.id)) {
			last = fmt.Errorf("another server answers at %s", n.mapped)
			return false
		}
		if !led { // while it loads its data, clients are to hear so from itself
			last = n.lead()
			led = last == nil
			return false
		}
		if strings.Contains(info, "\nloading:1") {
			last = errors.New("it still loads its data")
		}
		return last == nil
	}
	if err := poll(ctx, ready); err != nil || exited {
		return n.notReady(errors.Join(err, last))
	}
	return nil
}

func (n *Node) notReady(err error) error {
	return fmt.Errorf("not ready: %w; its log ends:\n%s", err, n.log())
}

// poll asks again and again until it is so, or ctx ends.
func poll(ctx context.Context, so func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Log is the end of what the server has written, over restarts.
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log()
}

func (n *Node) log() string {
	if n.container == nil {
		return "(no container)"
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTimeout)
	defer cancel()
	logs, err := n.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	const most = 500
	return string(text[max(0, len(text)-most):])
}

// close removes container and proxy. It may be called twice.
func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	for _, w := range n.wires {
		w.close()
	}
	defer unregister(n)
	if n.container == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTimeout)
	defer cancel()
	// By force, not Terminate: that would ask a paused server to end by itself first.
	err := inTurn(ctx, func() error {
		_, err := n.engine().ContainerRemove(ctx, n.container.ID,
			client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
		return err
	})
	return n.wrap("remove", err)
}

func (n *Node) change(what string, do func(context.Context) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return n.wrap(what, errors.New("closed"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultTimeout)
	defer cancel()
	err := do(ctx)
	if err == nil && !slices.Contains(restores, what) {
		n.note(what)
	}
	return n.wrap(what, err)
}

func (n *Node) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("integration: %s %s: %w", what, n.Addr(), err)
}
