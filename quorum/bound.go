package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
)

// What a node may make us keep. go-redis allocates a reply at the length that it is announced
// with, so a hostile node that announces 9e18 bytes, or a name that holds a value of 500 MB, would
// end the process. Our own connections look at the lengths before go-redis sees them. The largest
// honest reply is INFO, some 10 KB; scripts answer some 100 bytes.
const (
	// mostReply bounds one reply, and with replyShare all replies to one pipeline: those of a full
	// batch together take 5 MiB at the most.
	mostReply  = 1 << 20
	replyShare = 4 << 10 // what each reply adds again to what is left of mostReply

	mostElements = 1024 // of one array or map; Redis answers us with 30 at the most
	mostDepth    = 8    // of arrays in arrays: go-redis reads them by recursion
	mostHeader   = 32   // of a line that announces a length

	mostLine = 64 << 10 // an error's text, at the longest
)

// A replyError is what such a connection fails with. It wraps nothing: go-redis hands the innermost
// error of a new connection on, and that would say only half of it.
type replyError struct{ kind, detail string }

const (
	tooLarge = "too large a reply"
	notRESP  = "not Redis' protocol"
)

func (e *replyError) Error() string { return "answered nonsense: " + e.kind + ": " + e.detail }

func replyTooLarge(format string, args ...any) error {
	return &replyError{tooLarge, fmt.Sprintf(format, args...)}
}

// replyNotRESP shows the beginning only: a hostile node may send anything of any length.
func replyNotRESP(text []byte) error {
	return &replyError{notRESP, fmt.Sprintf("%q", text[:min(len(text), mostHeader)])}
}

// bounded makes connections whose replies have limits.
func bounded(
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: conn, reply: replyBounds{left: mostReply}}
		if raw, ok := conn.(syscall.Conn); ok {
			return &boundedRawConn{boundedConn: b, raw: raw}, nil
		}
		return b, nil
	}
}

// A boundedConn fails, for good, before it hands out a reply that is too large or no reply at all.
// One goroutine reads it at a time.
type boundedConn struct {
	net.Conn
	asked atomic.Bool // something was sent since the last Read

	// Of the reader.
	reply replyBounds
	err   error
}

// Write sends; what comes next is a new answer.
func (c *boundedConn) Write(p []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(p)
}

// Read hands out nothing of what it was given when a part of it goes too far.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	if c.asked.Load() && c.asked.Swap(false) {
		c.reply.left = mostReply
	}
	if c.err = c.reply.take(p[:n]); c.err != nil {
		return 0, c.err
	}
	return n, err
}

// A boundedRawConn lets go-redis see whether a connection in its pool is still alive.
type boundedRawConn struct {
	*boundedConn
	raw syscall.Conn
}

// SyscallConn is that of the connection below.
func (c *boundedRawConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }

// replyBounds follows the replies in a stream of bytes as far as their lengths go.
type replyBounds struct {
	left int // bytes that may still come

	body   int // bytes of a string that are still to come, its line end included
	header [mostHeader]byte
	length int   // of the line that header is the beginning of
	open   []int // elements still to come, of each array that is not complete
}

// take follows the stream by p.
func (b *replyBounds) take(p []byte) error {
	for len(p) > 0 {
		n, err := 0, error(nil)
		if b.body > 0 {
			n = min(b.body, len(p))
			b.body -= n
			if b.body == 0 {
				b.element()
			}
		} else if n, err = b.line(p); err != nil {
			return err
		}
		if b.left -= n; b.left < 0 {
			return replyTooLarge("more than %d bytes", mostReply)
		}
		p = p[n:]
	}
	return nil
}

// line follows a line that p begins with or goes on with, and returns how much of p belongs to it.
func (b *replyBounds) line(p []byte) (int, error) {
	if b.length == 0 && bytes.IndexByte([]byte("+-:$*_,#!=(%~>"), p[0]) < 0 {
		// Attributes (|) are real RESP3 and nothing that we ask for; go-redis skips them by
		// recursion, without end if they have none.
		return 0, replyNotRESP(p)
	}
	if b.length == 0 && len(b.open) == 0 {
		b.left = min(b.left+replyShare, mostReply)
	}
	n := bytes.IndexByte(p, '\n') + 1
	ends := n > 0
	if !ends {
		n = len(p)
	}
	if b.length < mostHeader {
		copy(b.header[b.length:], p[:n])
	}
	if b.length += n; b.length > mostLine {
		return 0, replyTooLarge("a line of more than %d bytes", mostLine)
	}
	if !ends {
		return n, nil
	}
	length := b.length
	b.length = 0
	return n, b.announce(length)
}

// announce takes in what a line of that length says of what follows it.
func (b *replyBounds) announce(length int) error {
	kind := b.header[0]
	if bytes.IndexByte([]byte("$!=*~>%"), kind) < 0 {
		b.element()
		return nil
	}
	header := b.header[:min(length, mostHeader)]
	n, err := strconv.Atoi(string(bytes.TrimSuffix(header[1:], []byte("\r\n"))))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return replyTooLarge("announced by %q", header)
	case err != nil || n < -1 || length > mostHeader:
		return replyNotRESP(header)
	case n < 0, n == 0 && kind != '$' && kind != '!' && kind != '=': // nil, or nothing in it
		b.element()
	case kind == '$' || kind == '!' || kind == '=':
		if n > b.left {
			return replyTooLarge("%d bytes, at most %d", n, mostReply)
		}
		b.body = n + len("\r\n")
	case n > mostElements || len(b.open) == mostDepth:
		return replyTooLarge("%d elements, in %d other replies", n, len(b.open))
	default:
		if kind == '%' {
			n *= 2
		}
		b.open = append(b.open, n)
	}
	return nil
}

// element counts one that is complete, and the arrays that it completes.
func (b *replyBounds) element() {
	for len(b.open) > 0 {
		last := len(b.open) - 1
		if b.open[last]--; b.open[last] > 0 {
			return
		}
		b.open = b.open[:last]
	}
}
