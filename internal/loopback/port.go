// Package loopback keeps TCP ports of 127.0.0.1 for servers that stop and come back, in tests.
//
// Limits. On Linux a reserved port stays ours from Reserve to Close: the kernel gives it neither
// to a listener that asks for any port nor to an outgoing connection. Elsewhere the port was
// free when Reserve returned, no more: a server that finds it taken has to be tried again.
//
// Why not a fixed port, or "listen on port 0, close, hope": a test that restarts its server on
// the same port finds, once in a few thousand runs, that a client's connection to some other
// server was given this very port as its own in the meantime.
//
// Files in reading order: port.go, hold_linux.go, hold_other.go.
package loopback

import (
	"fmt"
	"net"
	"strconv"
	"sync"
)

// A Port is a TCP port of 127.0.0.1 on which a server of ours may listen, again and again.
type Port struct {
	number int
	once   sync.Once
	hold   interface{ Close() error } // what keeps others away; nil where nothing can
	err    error                      // of the one call of hold.Close
}

// Reserve asks the kernel for a free port and keeps it until Close. A server must listen with
// SO_REUSEADDR to share it with the reservation; Go's listeners and redis-server do.
func Reserve() (*Port, error) {
	number, hold, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("loopback: reserve a port: %w", err)
	}
	return &Port{number: number, hold: hold}, nil
}

// Addr returns "127.0.0.1:port", also after Close.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Number returns the port's number, also after Close.
func (p *Port) Number() int { return p.number }

// Close gives the port back. It may be called more than once. A server that still listens on
// the port is not disturbed.
func (p *Port) Close() error {
	p.once.Do(func() {
		if p.hold != nil {
			p.err = p.hold.Close()
		}
	})
	return p.err
}
