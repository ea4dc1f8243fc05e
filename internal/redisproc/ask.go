package redisproc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// askTimeout bounds one question where the caller's context does not.
const askTimeout = 5 * time.Second

// Do sends one command as a user with all rights and returns its answer: string, int64, nil or
// []any; an error answer is an error. It ends when ctx ends, at the latest after five seconds.
//
// It is meant for a few commands at the edge of a test, on a connection of its own each. Why not
// by go-redis: asked before the server listens, as here at each start, its pool writes to the
// program's log and then waits a second before it dials again.
func (n *Node) Do(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", n.Addr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer, err := n.converse(conn, args)
	if ctx.Err() != nil {
		err = ctx.Err() // rather than "use of closed connection"
	}
	return answer, err
}

func (n *Node) converse(conn net.Conn, args []any) (any, error) {
	r := bufio.NewReader(conn)
	user, password := n.settings.credentials()
	if password != "" {
		if _, err := ask(conn, r, []any{"AUTH", user, password}); err != nil {
			return nil, err
		}
	}
	return ask(conn, r, args)
}

// ask sends a command, in the protocol's second version, and reads the answer.
func ask(w io.Writer, r *bufio.Reader, args []any) (any, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		text := fmt.Sprint(arg)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(text), text)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return nil, err
	}
	return readAnswer(r)
}

func readAnswer(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty answer")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, serverError(rest)
	}
	number, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("answer %q: %w", line, err)
	case kind == ':':
		return number, nil
	case number < 0: // "$-1" and "*-1"
		return nil, nil
	case kind == '$':
		return readString(r, number)
	case kind == '*':
		return readArray(r, number)
	}
	return nil, fmt.Errorf("answer %q is of no known kind", line)
}

func readString(r *bufio.Reader, size int64) (any, error) {
	text := make([]byte, size+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	return string(text[:size]), nil
}

// readArray reads an array to its end; an error answer among its elements stands in its place.
func readArray(r *bufio.Reader, size int64) (any, error) {
	elements := make([]any, 0, size)
	for range size {
		element, err := readAnswer(r)
		if refused, ok := errors.AsType[serverError](err); ok {
			element, err = refused, nil
		}
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return elements, nil
}

// A serverError is an error that the server answered, as against one on the way to it.
type serverError string

func (e serverError) Error() string { return string(e) }
