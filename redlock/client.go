package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/teller"
	"github.com/quorumlock/quorumlock/internal/window"
	"github.com/quorumlock/quorumlock/quorum"
)

// A Client takes locks on a majority of a fixed set of nodes. It is made by New, lives as long as
// the application, and may be used by any number of goroutines. The methods of another fail with
// ErrInvalid.
type Client struct {
	cfg    Config
	engine *quorum.Engine
	clock  clock.Clock
	log    *slog.Logger
	keeper keeper
	lines  lines
	tries  *window.Window // that are under way
	teller teller.Teller

	waitsUntil atomic.Int64 // when Lock last said that it waits until, ns since the epoch

	notBefore atomic.Int64 // monotonic clock: rounds begun up to then count from a wrong moment

	done  chan struct{}  // closed when Close begins
	calls sync.WaitGroup // TryLock and Lock calls under way; added to under mu

	mu       sync.Mutex // guards closed
	closed   bool
	gone     chan struct{} // closed when Close is through
	closeErr error         // readable once gone is closed
}

// New makes a Client. It checks all of cfg and reports all faults in one error that matches
// ErrInvalid. It does not connect: nodes may be down, and come up later.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("redlock.New: %w", err)
	}
	nodes, err := cfg.nodes()
	if err != nil {
		return nil, fmt.Errorf("redlock.New: %w", err)
	}
	return newClient(cfg, nodes, clock.System{}), nil
}

// nodes makes the nodes that cfg names.
func (cfg *Config) nodes() ([]quorum.Node, error) {
	var nodes []quorum.Node
	for i, client := range cfg.Clients {
		name := fmt.Sprintf("client %d (%s)", i+1, client.Options().Addr)
		nodes = append(nodes, quorum.Wrap(client, name, cfg.NodeTimeout))
	}
	for i, addr := range cfg.Addrs {
		node, err := quorum.Dial(addr, cfg.NodeTimeout)
		if err != nil {
			return nil, invalid("Addrs[%d]: %v", i, err)
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func newClient(cfg Config, nodes []quorum.Node, clk clock.Clock) *Client {
	c := &Client{cfg: cfg, clock: clk, log: cfg.Logger, done: make(chan struct{}),
		gone: make(chan struct{}), tries: window.New(mostTries, mostTries, cfg.NodeTimeout/8)}
	c.keeper.client = c
	c.engine = quorum.New(nodes, quorum.Settings{
		NodeTimeout: cfg.NodeTimeout,
		MaxTTL:      cfg.MaxTTL,
		DriftFactor: cfg.DriftFactor,
		Prefix:      cfg.Prefix,
		Clock:       clk,
		Guard:       !cfg.DisableRestartGuard, TrustReplicas: cfg.TrustReplicas,
		LookOnly: cfg.lookOnly,
		OwnStep:  c.ownStep,
		Warn:     c.nodeWarning,
		Trouble:  c.nodeChanged,
	})
	for _, warning := range cfg.warnings() {
		c.log.Warn("redlock: " + warning)
	}
	return c
}

// nodeChanged reports a node that began to fail, or answers again.
func (c *Client) nodeChanged(node int, err error) {
	name := c.engine.NodeName(node)
	if err != nil {
		err = explain(err)
		c.log.Warn("redlock: node fails", "node", name, "error", err)
	} else {
		c.log.Info("redlock: node answers again", "node", name)
	}
	c.cfg.Observer.node(NodeChange{Node: name, Err: err})
}

// nodeWarning reports what an operator should know of a node, once.
func (c *Client) nodeWarning(node int, text string) {
	c.log.Warn("redlock: node "+text, "node", c.engine.NodeName(node))
}

// ownStep is for our own clocks having stood still for d: every validity is that much shorter.
func (c *Client) ownStep(d time.Duration) {
	c.log.Warn("redlock: the clocks of this machine stood still, or were stepped", "by", d)
	if d <= 0 {
		return
	}
	// Rounds that began before it count from too late a moment: what they say is not used.
	c.notBefore.Store(int64(c.clock.Now().Mono))
	for _, l := range c.keeper.all() {
		l.shorten(d)
	}
}

// misdated reports whether a round began before our clocks stood still unseen.
func (c *Client) misdated(started clock.Reading) bool {
	return int64(started.Mono) <= c.notBefore.Load() && c.notBefore.Load() != 0
}

// begin enters a call that Close waits for. The caller ends it with c.calls.Done.
func (c *Client) begin(ctx context.Context, op, name string) error {
	if !c.made() {
		return during(op, name, errNotMade)
	}
	if ctx == nil {
		return during(op, name, invalid("the context is nil"))
	}
	if err := checkName(name); err != nil {
		return during(op, "", err)
	}
	return c.enter(ctx, op, name)
}

// made reports whether New made the Client, and not somebody else by its type.
func (c *Client) made() bool { return c != nil && c.engine != nil }

// errNotMade is of a Client that New did not make.
var errNotMade = invalid("the Client was not made by New")

// enter is begin for a name and a context that were looked at, or are of our own.
func (c *Client) enter(ctx context.Context, op, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &RoundError{Op: op, Name: name, kinds: []error{ErrClosed}}
	}
	if err := ctx.Err(); err != nil {
		return &RoundError{Op: op, Name: name, kinds: []error{err}}
	}
	c.calls.Add(1)
	return nil
}

// Close frees the locks that are still held and ends everything the client started. It blocks
// until that is done, at most 4 x NodeTimeout. Contexts of held locks end with the cause
// ErrClosed, waiting calls return it at once, and so do later ones. Clients of your own stay open.
// Keys on nodes that could not be reached end by their TTL. Calling it again is fine and gives the
// same result.
func (c *Client) Close() error {
	if !c.made() {
		return nil // there is nothing
	}
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		c.closeErr = c.close()
		close(c.gone)
	}
	// A channel and not a sync.Once: in a bubble of testing/synctest, time stands still for those
	// who wait for a mutex.
	<-c.gone
	return c.closeErr
}

func (c *Client) close() error {
	close(c.done)
	c.engine.Stop()

	ctx, cancel := context.WithTimeout(context.Background(), 4*c.cfg.NodeTimeout)
	defer cancel()
	var held []closedHold
	for _, l := range c.keeper.close() {
		if hold, ok := l.endOnClose(); ok { // all contexts end before the first release
			held = append(held, hold)
		}
	}
	errs := []error{c.freeAll(ctx, held)}
	returned := make(chan struct{})
	go func() { c.calls.Wait(); close(returned) }()
	select {
	case <-returned:
	case <-ctx.Done():
	}
	errs = append(errs, c.engine.Close(ctx))
	return errors.Join(errs...)
}

// closeWindow is how many releases Close has out at once. Were all sent together, those of very
// many locks would wait in the lanes' queues until they are given up unsent.
const closeWindow = 1024

// freeAll frees what Close found held, as far as there is time, and sums up what was not: the
// errors of all of them would be more than anybody can read.
func (c *Client) freeAll(ctx context.Context, held []closedHold) error {
	window := make(chan struct{}, closeWindow)
	results := make(chan error, len(held))
	sent := 0
	for ctx.Err() == nil && sent < len(held) {
		select {
		case window <- struct{}{}:
			h := held[sent]
			sent++
			c.engine.Release(h.hold, nil, func(got quorum.Freeing) {
				err := c.freeingError(h.hold.Name, got, false, true)
				if err == nil {
					c.cfg.Observer.freed(h.event)
				}
				results <- err
				<-window
			})
		case <-ctx.Done():
		}
	}
	left, first := len(held)-sent, error(nil)
	for range sent {
		select {
		case err := <-results:
			if err != nil {
				left, first = left+1, cmp.Or(first, err)
			}
		case <-ctx.Done():
			left++
		}
	}
	if left == 0 {
		return nil
	}
	return fmt.Errorf("redlock: close: %d of %d locks were left to end by their TTL: %w",
		left, len(held), cmp.Or(first, error(ErrNoQuorum)))
}

// pollFirst and pollMost are how often a waiting call asks even though it heard nothing, pollGrows
// how many times as long each pause is as the one before it. pollUnheard is how often where the lock
// goes from hand to hand, and releases are not heard: about as often as redsync tries, because who
// asks once in ten seconds finds it free by chance only.
const (
	pollUnheard = 100 * time.Millisecond

	pollFirst = time.Second
	pollGrows = 4
	pollMost  = 10 * time.Second
)
