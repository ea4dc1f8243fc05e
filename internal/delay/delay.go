// Package delay is a slow network for measurements: a dialer whose connections hold up what goes
// over them.
package delay

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Network holds up every message by a random time between least and most, on its way there and on
// its way back, alike for all that dial through it.
type Network struct {
	least, most time.Duration

	mu     sync.Mutex // guards random
	random *rand.Rand
}

// New is a network whose delays are those of the seed.
func New(least, most time.Duration, seed uint64) *Network {
	return &Network{least: least, most: most, random: rand.New(rand.NewPCG(seed, 0))}
}

// Dial is for redis.Options.Dialer.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var plain net.Dialer
	conn, err := plain.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: conn, network: n}, nil
}

// pass takes the time that a message is under way.
func (n *Network) pass() {
	n.mu.Lock()
	span := n.least + time.Duration(n.random.Int64N(int64(n.most-n.least)+1))
	n.mu.Unlock()
	if span > 0 {
		time.Sleep(span)
	}
}

// A slowConn delays what go-redis sends and receives. Holding up the caller is enough: a
// connection has one pipeline under way at a time. What is written, or read, in several pieces
// without the other in between is one message, and held up once. (So what a subscription hears
// unasked is not held up: this is for calls and their answers.)
type slowConn struct {
	net.Conn
	network *Network
	writing atomic.Bool // the latest piece was written, not read
}

func (c *slowConn) Write(b []byte) (int, error) {
	if !c.writing.Swap(true) {
		c.network.pass()
	}
	return c.Conn.Write(b)
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.writing.Swap(false) {
		c.network.pass()
	}
	return n, err
}
