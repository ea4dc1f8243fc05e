package main

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialer connects to a node, for redis.Options.Dialer; nil: without delay.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// A delay holds up every message by a random time between least and most, on its way there and on
// its way back, alike for all that dial through it.
type delay struct {
	least, most time.Duration

	mu     sync.Mutex // guards random
	random *rand.Rand
}

func newDelay(least, most time.Duration, seed uint64) *delay {
	return &delay{least: least, most: most, random: rand.New(rand.NewPCG(seed, 0))}
}

// dial is a dialer.
func (d *delay) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var plain net.Dialer
	conn, err := plain.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: conn, delay: d}, nil
}

// pass takes the time that a message is under way.
func (d *delay) pass() {
	d.mu.Lock()
	span := d.least + time.Duration(d.random.Int64N(int64(d.most-d.least)+1))
	d.mu.Unlock()
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
	delay   *delay
	writing atomic.Bool // the latest piece was written, not read
}

func (c *slowConn) Write(b []byte) (int, error) {
	if !c.writing.Swap(true) {
		c.delay.pass()
	}
	return c.Conn.Write(b)
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.writing.Swap(false) {
		c.delay.pass()
	}
	return n, err
}
