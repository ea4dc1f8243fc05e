//go:build !linux

package loopback

import (
	"errors"
	"net"
)

// reserve only finds a port that is free at this moment. BSD systems do not let two sockets
// bind to the same address, listening or not, unless both ask for SO_REUSEPORT, and servers
// do not.
func reserve() (int, interface{ Close() error }, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, nil, errors.Join(errors.New("not a TCP address"), l.Close())
	}
	return tcp.Port, nil, l.Close()
}
