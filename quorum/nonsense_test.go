package quorum_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// serve lets serve have each connection that l accepts, until the test ends.
func serve(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			running.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

// liar is the address of a server that treats its connections like that.
func liar(t *testing.T, with func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, with)
	return l.Addr().String()
}

// readCommand reads one command as Redis would, and returns its name in lower case.
func readCommand(r *bufio.Reader) (string, error) {
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	name := ""
	for i := 0; i < n && err == nil; i++ {
		var size int
		if size, err = number(); err != nil {
			break
		}
		arg := make([]byte, size+2)
		_, err = io.ReadFull(r, arg)
		if i == 0 {
			name = strings.ToLower(string(arg[:size]))
		}
	}
	return name, err
}

// says answers every command with that text.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			if _, err := readCommand(r); err != nil {
				return
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

// politely answers like a Redis until it is asked for what a lock needs.
func politely(text string) func(net.Conn) {
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			name, err := readCommand(r)
			if err != nil {
				return
			}
			answer := text
			switch name {
			case "hello":
				answer = "-ERR unknown command 'HELLO'\r\n"
			case "ping":
				answer = "+PONG\r\n"
			case "select", "client":
				answer = "+OK\r\n"
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	}
}

// once sends text and then hangs up, or goes on with more as long as somebody reads.
func once(text string, more func() string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			return
		}
		for next := text; next != ""; next = more() {
			if _, err := io.WriteString(conn, next); err != nil || more == nil {
				return
			}
		}
	}
}

func always(text string) func() string { return func() string { return text } }

// swallow reads on and says nothing.
func swallow(conn net.Conn) { io.Copy(io.Discard, conn) }

// tooLarge are answers whose length alone would fill the memory.
var tooLarge = map[string]func(net.Conn){
	"a string of 64 MB":      once("$67108864\r\n", always(strings.Repeat("x", 1<<16))),
	"a string of 9e18 bytes": once("$9000000000000000000\r\n", always("x")),
	"an array of 1e9":        once("*1000000000\r\n", always(":1\r\n")),
	"arrays without end":     once("*1\r\n", always(strings.Repeat("*1\r\n", 1<<12))),
	"attributes without end": once("|1\r\n", always("+a\r\n+b\r\n|1\r\n")),
	"a line without end":     once("+", always(strings.Repeat("x", 1<<16))),
	"large when asked":       politely("$67108864\r\n"),
	"an error of 64 MB":      politely("!67108864\r\n"),
	"replies without end": politely(
		strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 100)),
}

// nonsense is how servers may treat their clients.
func nonsense() map[string]func(net.Conn) {
	all := map[string]func(net.Conn){
		"silent":          swallow,
		"hangs up":        func(net.Conn) {},
		"half closed":     func(c net.Conn) { c.(*net.TCPConn).CloseWrite(); swallow(c) },
		"cut in a string": once("$10\r\nabc", nil),
		"cut in a number": once("$1", nil),
		"garbage": func(conn net.Conn) {
			random := rand.NewChaCha8([32]byte{1})
			once("\x00\xff", func() string {
				var b [64]byte
				random.Read(b[:])
				return string(b[:])
			})(conn)
		},
		"drips": once("$", func() string { time.Sleep(20 * time.Millisecond); return "0" }),
		"drips a polite reply": func(conn net.Conn) {
			text := strings.Repeat("+OK\r\n", 1000)
			once(text[:1], func() string {
				time.Sleep(30 * time.Millisecond)
				text = text[1:]
				return text[:1]
			})(conn)
		},
	}
	for name, text := range map[string]string{
		"an integer": ":1\r\n", "an array": "*2\r\n:1\r\n$1\r\na\r\n", "nil": "$-1\r\n",
		"an empty string": "$0\r\n\r\n", "OK": "+OK\r\n", "an error": "-ERR no\r\n",
		"a map": "%1\r\n+a\r\n+b\r\n", "a plus": "$1\r\n+\r\n", "two replies": "+a\r\n+b\r\n",
		"a vote without memory": "$26\r\n+ 1764403200 123457 0 0 0 \r\n",
		"an empty array":        "*0\r\n",
		"a message of numbers":  "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n",
	} {
		all["when asked "+name] = politely(text)
	}
	all["always an integer"], all["always nil"] = says(":1\r\n"), says("$-1\r\n")
	for name, with := range tooLarge {
		all[name] = with
	}
	return all
}

const (
	nodeTimeout = 2400 * time.Millisecond // good nodes must answer within it, on a busy machine, too
	slack       = 3 * time.Second         // for the same reason
)

// turns bounds how many of these tests run at once, for the same reason: each has several servers.
var turns = make(chan struct{}, 4)

// within fails the test if the call takes longer than its bound.
func within(t *testing.T, what string, bound time.Duration, call func()) {
	t.Helper()
	began := time.Now()
	call()
	if took := time.Since(began); took > bound+slack {
		t.Errorf("%s took %v, want at most %v", what, took, bound)
	}
}

// asks makes a client over the addresses and calls all that a client can do.
func asks(t *testing.T, addrs []string, liars []string) {
	t.Helper()
	turns <- struct{}{}
	defer func() { <-turns }()
	c, err := redlock.New(redlock.Config{Addrs: addrs, NodeTimeout: nodeTimeout,
		Prefix: t.Name() + ":", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer within(t, "Close", 4*nodeTimeout, func() { c.Close() }) // an error is right: some are dead
	enough := len(liars) < 3
	ctx := t.Context()

	within(t, "TryLock", 2*nodeTimeout, func() {
		l, err := c.TryLock(ctx, "a", redlock.WithoutRenewal())
		switch {
		case enough && err != nil:
			t.Errorf("TryLock beside one bad node: %v", err)
		case enough:
			within(t, "Extend", nodeTimeout, func() {
				if err := l.Extend(ctx); err != nil {
					t.Errorf("Extend beside one bad node: %v", err)
				}
			})
			waits(t, c)
			within(t, "Unlock", 2*nodeTimeout, func() {
				if err := l.Unlock(ctx); err != nil {
					t.Errorf("Unlock beside one bad node: %v", err)
				}
			})
		default:
			namesNodes(t, "TryLock", err, liars)
		}
	})
	within(t, "Inspect", nodeTimeout, func() {
		s, err := c.Inspect(ctx, "a")
		if enough && err != nil {
			t.Errorf("Inspect beside one bad node: %v", err)
		} else if !enough {
			namesNodes(t, "Inspect", err, liars)
		}
		for i := range liars {
			if got := s.PerNode[i]; got.Err == nil || !strings.Contains(got.Err.Error(), liars[i]) {
				t.Errorf("Inspect of %s: got %+v, want an error that names it", liars[i], got)
			}
		}
	})
	within(t, "Nodes", nodeTimeout, func() {
		for i, n := range c.Nodes(ctx) {
			if i < len(liars) && (n.Err == nil || !strings.Contains(n.Err.Error(), liars[i])) {
				t.Errorf("Nodes: %+v, want an error that names the node", n)
			}
			busy := n.Err != nil && strings.Contains(n.Err.Error(), "no answer in time")
			if i >= len(liars) && n.Err != nil && !busy {
				t.Errorf("Nodes: %+v, want no error of a good one", n)
			}
		}
	})
}

// waits lets the client listen at all nodes for a lock that is held.
func waits(t *testing.T, c *redlock.Client) {
	t.Helper()
	const patience = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	within(t, "Lock", patience, func() {
		if _, err := c.Lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock of a held lock beside one bad node: got %v, want that time is up", err)
		}
	})
}

// namesNodes wants an ErrNoQuorum with an error of each of the bad nodes.
func namesNodes(t *testing.T, what string, err error, liars []string) {
	t.Helper()
	var round *redlock.RoundError
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &round) {
		t.Errorf("%s with a majority of bad nodes: got %v, want ErrNoQuorum", what, err)
		return
	}
	said := 0 // not of all: the verdict may be certain before the last has answered
	for _, addr := range liars {
		if regexp.MustCompile(`; nodes? (\S+, )*` + regexp.QuoteMeta(addr) + `(, \S+)*: `).MatchString(err.Error()) {
			said++
		}
	}
	if said == 0 || len(round.Errs) < 3 {
		t.Errorf("%s: %v\nwant it to say what is wrong with which nodes", what, err)
	}
	if len(err.Error()) > 4000 {
		t.Errorf("%s: an error of %d bytes", what, len(err.Error()))
	}
}

// TestNodesThatAnswerNonsense asks clients to do all they can beside them. It is not parallel to
// other tests because it looks for goroutines that are left over.
func TestNodesThatAnswerNonsense(t *testing.T) {
	good := embedded.ForTest(t, 4).Addrs()
	t.Run("servers", func(t *testing.T) {
		for name, with := range nonsense() {
			t.Run(fmt.Sprintf("%s, 1 of 5", name), func(t *testing.T) {
				t.Parallel()
				bad := liar(t, with)
				asks(t, append([]string{bad}, good...), []string{bad})
			})
			t.Run(fmt.Sprintf("%s, 3 of 5", name), func(t *testing.T) {
				t.Parallel()
				bad := []string{liar(t, with), liar(t, with), liar(t, with)}
				asks(t, append(bad, good[:2]...), bad)
			})
		}
		t.Run("HTTP, 3 of 5", func(t *testing.T) {
			t.Parallel()
			var bad []string
			for range 3 {
				s := httptest.NewServer(http.NotFoundHandler())
				t.Cleanup(s.Close)
				bad = append(bad, s.Listener.Addr().String())
			}
			asks(t, append(bad, good[:2]...), bad)
		})
	})
	wantNoGoroutines(t)
}

// wantNoGoroutines wants that all that clients have started ends.
func wantNoGoroutines(t *testing.T) {
	t.Helper()
	var left []string
	for until := time.Now().Add(slack); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = nil
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "/go-redis/") || strings.Contains(stack, "quorum.(*") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("%d goroutines are left after Close, the first:\n%s", len(left), left[0])
}

// TestMemoryIsBoundedWhateverANodeAnnounces is not parallel: it counts what is allocated.
func TestMemoryIsBoundedWhateverANodeAnnounces(t *testing.T) {
	const most = 128 << 20 // of ten answers; what the server allocates is in it
	for name, with := range tooLarge {
		node, err := quorum.Dial(liar(t, with), nodeTimeout)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if _, err := node.Describe(ctx); err == nil && name != "replies without end" {
				t.Errorf("%s: Describe without an error", name)
			}
			cancel()
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: %d MB were allocated, want less than %d", name, got>>20, most>>20)
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBoundsHoldOnEveryKindOfConnection: TLS and Unix sockets, too.
func TestBoundsHoldOnEveryKindOfConnection(t *testing.T) {
	t.Parallel()
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS() // for its certificate
	t.Cleanup(web.Close)
	secure, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "redis.sock")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	for addr, l := range map[string]net.Listener{
		"rediss://" + secure.Addr().String() + "?skip_verify=true": secure,
		"unix://" + path: local,
	} {
		serve(t, l, says("$9000000000000000000\r\n"))
		node, err := quorum.Dial(addr, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, err = node.Describe(t.Context())
		if err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: got %v, want that the reply is too large", addr, err)
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAUsersClientThatPanics: go-redis panics when it is told to make 9e18 bytes. With clients of
// the user's own that is caught; lengths that can be allocated are.
func TestAUsersClientThatPanics(t *testing.T) {
	t.Parallel()
	var clients []*redis.Client
	for range 3 {
		client := redis.NewClient(&redis.Options{Addr: liar(t, politely("$9000000000000000000\r\n")),
			Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	c, err := redlock.New(redlock.Config{Clients: clients, NodeTimeout: nodeTimeout,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.TryLock(t.Context(), "a")
	if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("TryLock: got %v, want ErrNoQuorum that tells of the panic", err)
	}
}
