package loopback

import (
	"errors"
	"os"
	"syscall"
)

// A socketFD is a bound socket that never listens.
type socketFD int

func (fd socketFD) Close() error { return os.NewSyscallError("close", syscall.Close(int(fd))) }

// reserve binds a socket and does not listen on it. Linux lets a second socket bind to the same
// address if both say SO_REUSEADDR and the first does not listen; and it keeps ports with any
// bound socket out of its choice for listeners on port 0 and for outgoing connections.
// A connection to a port that is only bound is refused, as if nobody were there.
func reserve() (int, interface{ Close() error }, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	number, err := bindAny(fd)
	if err != nil {
		return 0, nil, errors.Join(err, socketFD(fd).Close())
	}
	return number, socketFD(fd), nil
}

func bindAny(fd int) (int, error) {
	err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	in4, ok := sa.(*syscall.SockaddrInet4)
	if !ok {
		return 0, errors.New("getsockname: not an IPv4 address")
	}
	return in4.Port, nil
}
