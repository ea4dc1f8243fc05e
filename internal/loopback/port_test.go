package loopback_test

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

func reserve(t *testing.T) *loopback.Port {
	t.Helper()
	p, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAServerMayListenOnItsReservedPortAgainAndAgain(t *testing.T) {
	t.Parallel()
	p := reserve(t)
	for range 3 {
		l, err := net.Listen("tcp4", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp4", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNobodyAnswersOnAPortThatIsOnlyReserved(t *testing.T) {
	t.Parallel()
	p := reserve(t)
	conn, err := net.Dial("tcp4", p.Addr())
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: got %v, want connection refused", err)
	}
}

func TestNoOutgoingConnectionIsGivenAReservedPort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux keeps a reserved port from others")
	}
	p := reserve(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.Number()}}
	conn, err := d.Dial("tcp4", l.Addr().String())
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("dial from the reserved port: got %v, want address in use", err)
	}
}

func TestCloseGivesThePortBackOnceAndForAll(t *testing.T) {
	t.Parallel()
	p := reserve(t)
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if p.Number() == 0 || p.Addr() == "" {
		t.Errorf("after Close: got port %d, address %q, want both kept", p.Number(), p.Addr())
	}
}
