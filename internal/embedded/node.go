package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// A Node is one server in memory, or the place where it was and will be again. All methods may
// be called concurrently.
type Node struct {
	redis *miniredis.Miniredis
	port  *loopback.Port
	clock *clock

	mu       sync.Mutex // guards what follows, over a whole start or stop
	listener net.Listener
	accepted chan struct{} // closed when the accept loop of listener has ended
	closed   bool
}

// startOne starts one node and its clock's goroutine, which ends with close.
func startOne() (*Node, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, err
	}
	m := miniredis.NewMiniRedis()
	n := &Node{redis: m, port: port, clock: newClock(m)}
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// Addr returns "127.0.0.1:port". It stays the same for the node's life.
func (n *Node) Addr() string { return n.port.Addr() }

// Redis gives tests a look at the data from inside. Its life and its clock belong to the Node:
// Close, Start, SetTime, FastForward and SetError are not for use, and its Addr is empty.
func (n *Node) Redis() *miniredis.Miniredis { return n.redis }

// Stop ends all connections and refuses new ones, as if the machine had lost its server. The
// data stays, and time goes on for it. A node that does not run is left alone.
func (n *Node) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wrap("stop", n.stop())
}

// Restart lets the node be reached again on the same port, with the data it had or, if empty is
// true, with none; a running one is stopped first. Its script cache is empty, as after a restart
// of redis-server.
func (n *Node) Restart(empty bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return n.wrap("restart", net.ErrClosed)
	}
	err := n.stop()
	if empty {
		n.redis.FlushAll()
	}
	return n.wrap("restart", errors.Join(err, n.open()))
}

// open makes a server without connections ready, then lets clients in.
func (n *Node) open() error {
	n.redis.Ctx, n.redis.CtxCancel = context.WithCancel(context.Background())
	// miniredis' own Start would listen before a hook can be set. Its Dial makes a server that
	// does not listen; the one connection that comes with it is not needed.
	conn, err := n.redis.Dial()
	if err != nil {
		return err
	}
	srv := n.redis.Server()
	nobody := server.NewPeer(bufio.NewWriter(io.Discard))
	srv.Dispatch(nobody, []string{"SCRIPT", "FLUSH"})
	srv.SetPreHook(n.clock.hook)
	l, err := net.Listen("tcp4", n.Addr())
	if err != nil {
		n.redis.Close()
		return errors.Join(err, conn.Close())
	}
	n.listener, n.accepted = l, make(chan struct{})
	go accept(l, srv, n.accepted)
	return conn.Close()
}

// accept serves connections until the listener is closed.
func accept(l net.Listener, srv *server.Server, done chan<- struct{}) {
	defer close(done)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		srv.ServeConn(conn)
	}
}

func (n *Node) stop() error {
	if n.listener == nil {
		return nil
	}
	err := n.listener.Close()
	<-n.accepted // no connection may come to a server that is being closed
	n.listener = nil
	n.redis.Close()
	return err
}

func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	err := n.stop()
	n.clock.stop()
	return n.wrap("close", errors.Join(err, n.port.Close()))
}

func (n *Node) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("embedded: %s %s: %w", what, n.Addr(), err)
}
