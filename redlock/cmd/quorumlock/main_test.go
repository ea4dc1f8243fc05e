package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestMain(m *testing.M) {
	quorum.Mute()
	m.Run()
}

// A result is what one run of the command left.
type result struct {
	status      int
	out, errors string
}

// call runs the command on these nodes.
func call(t *testing.T, nodes []string, args ...string) result {
	t.Helper()
	return callFor(t.Context(), nodes, args...)
}

func callFor(ctx context.Context, nodes []string, args ...string) result {
	return callTo(ctx, &told{more: make(chan struct{}, 1)}, nodes, args...)
}

func callTo(ctx context.Context, out *told, nodes []string, args ...string) result {
	var errors bytes.Buffer
	args = append([]string{"-addrs", strings.Join(nodes, ","), "-timeout", "2s"}, args...)
	status := run(ctx, args, out, &errors)
	return result{status, out.String(), errors.String()}
}

// told is output that can be waited for while it is written.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (o *told) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *told) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the text was written, and does what it is given again and again meanwhile.
func (o *told) await(t *testing.T, text string, do ...func()) {
	t.Helper()
	bound := time.After(time.Minute)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.more:
		case <-again.C:
			for _, f := range do {
				f()
			}
		case <-bound:
			t.Fatalf("not written within a minute: %s\n%s", text, o)
		}
	}
}

// want wants the exit status, and each text in the output or the errors.
func (r result) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("exit status %d, want %d\n%s%s", r.status, status, r.out, r.errors)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.errors, text) {
			t.Errorf("want %q in\n%s%s", text, r.out, r.errors)
		}
	}
	if (r.errors != "") != (status != exitOK) {
		t.Errorf("exit status %d, and on standard error: %q", status, r.errors)
	}
}

// objects reads one JSON object from each line.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, o)
	}
	return all
}

// user is a client of the library on the same nodes.
func user(t *testing.T, cfg redlock.Config) *redlock.Client {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	c, err := redlock.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func take(t *testing.T, c *redlock.Client, name string, opts ...redlock.LockOption) *redlock.Lock {
	t.Helper()
	l, err := c.TryLock(t.Context(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// everywhere waits until the nodes that a winner does not wait for have the key, too.
func everywhere(t *testing.T, nodes embedded.Nodes, name string) {
	t.Helper()
	for _, n := range nodes {
		for began := time.Now(); !n.Redis().Exists(name); time.Sleep(time.Millisecond) {
			if time.Since(began) > 10*time.Second {
				t.Fatalf("node %s has no key of %q", n.Addr(), name)
			}
		}
	}
}

// nodesAndUser are three nodes in memory, without a restart guard, and somebody who locks there.
func nodesAndUser(t *testing.T, identity string) (embedded.Nodes, *redlock.Client) {
	t.Helper()
	nodes := embedded.ForTest(t, 3)
	return nodes, user(t, redlock.Config{Addrs: nodes.Addrs(), Identity: identity,
		TTL: time.Minute, NodeTimeout: 2 * time.Second})
}

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {errors.New("x"), 1}, {context.Canceled, 1}, {redlock.ErrClosed, 1},
		{errUsage, 2}, {redlock.ErrInvalid, 2}, {redlock.ErrHeld, 3}, {redlock.ErrNoQuorum, 4},
		{redlock.ErrLost, 5}, {redlock.ErrNotHeld, 6},
		{fmt.Errorf("x: %w", errors.Join(redlock.ErrNotHeld, redlock.ErrHeld)), 3},
		{fmt.Errorf("x: %w", errors.Join(redlock.ErrNotHeld, redlock.ErrLost)), 5},
		{&redlock.NodeError{Node: "a", Op: "admit", Err: errors.New("x")}, 1},
	} {
		if got := status(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	some := []string{"127.0.0.1:1"}
	for _, args := range [][]string{
		{}, {"lock"}, {"inspect"}, {"inspect", "a", "b"}, {"free"}, {"nodes", "a"}, {"-x", "nodes"},
		{"nodes", "-timeout", "0s"}, {"nodes", "-timeout", "x"}, {"watch", "a", "-every", "-1s"},
		{"admit", "-max-ttl", "1us"}, {"admit", "-max-ttl", "1000h"}, {"admit", "no such node"},
		{"inspect", ""}, {"inspect", "ql:node"}, {"watch", "ql:node"}, {"free", "ql:node"},
		{"inspect", strings.Repeat("x", 2000)},
	} {
		if got := call(t, some, args...); got.status != exitUsage || got.errors == "" {
			t.Errorf("%q: exit status %d, want %d; %s", args, got.status, exitUsage, got.errors)
		}
	}
	call(t, nil, "nodes").want(t, exitUsage, addrsVariable)
	call(t, []string{"a:1", "a:1"}, "nodes").want(t, exitUsage, "same address twice")
	help := call(t, some, "-help")
	if help.status != exitOK || !strings.Contains(help.errors, "Exit status") {
		t.Errorf("-help: exit status %d: %s", help.status, help.errors)
	}
}

func TestAddressesFromTheEnvironment(t *testing.T) {
	t.Setenv(addrsVariable, "redis://:geheim@127.0.0.1:1, 127.0.0.1:2")
	var out, errs bytes.Buffer
	if got := run(t.Context(), []string{"nodes"}, &out, &errs); got != exitNoQuorum {
		t.Errorf("exit status %d, want %d", got, exitNoQuorum)
	}
	if text := out.String(); !strings.Contains(text, "redis://127.0.0.1:1") ||
		!strings.Contains(text, "127.0.0.1:2") {
		t.Errorf("got %s", text)
	}
	run(t.Context(), []string{"-help"}, &out, &errs)
	if strings.Contains(out.String()+errs.String(), "geheim") {
		t.Errorf("the password is shown in %s%s", &out, &errs)
	}
}

func TestPasswordsAreNeverShown(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"redis://user:geheim@127.0.0.1:1", "redis://:geheim@%zz", "user:geheim@127.0.0.1:1",
		"rediss://:geheim@127.0.0.1:1/x", "unix://u:geheim@/nowhere", "geheim@:1",
		"redis://127.0.0.1:1?password=geheim",
	} {
		for _, args := range [][]string{{"nodes"}, {"inspect", "a"}, {"admit"}, {"admit", addr},
			{"free", "a", "-yes"}, {"watch", "a", "-for", "10ms"}, {"nodes", "-json"}, {"-x"}} {
			got := call(t, []string{addr, "127.0.0.1:2"}, args...)
			text := strings.ReplaceAll(got.out+got.errors, fmt.Sprintf("%q is not one of", addr), "")
			if strings.Contains(text, "geheim") {
				t.Errorf("%q: the password of %s is shown in %s", args, addr, text)
			}
		}
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	nodes := embedded.ForTest(t, 3)
	call(t, nodes.Addrs(), "nodes").want(t, exitOK, "NODE", "yes", "no restart guard",
		"3 of 3 nodes vote, 2 needed")
	if err := nodes[0].Stop(); err != nil {
		t.Fatal(err)
	}
	call(t, nodes.Addrs(), "nodes").want(t, exitOK, "connection refused", "2 of 3 nodes vote")
	got := call(t, nodes.Addrs(), "nodes", "-json")
	got.want(t, exitOK)
	lines := objects(t, got.out)
	if len(lines) != 3 || lines[0]["votes"] != false || lines[0]["error"] == "" ||
		lines[1]["votes"] != true || lines[1]["node"] != nodes[1].Addr() {
		t.Errorf("got %v", lines)
	}
	if err := nodes[1].Stop(); err != nil {
		t.Fatal(err)
	}
	call(t, nodes.Addrs(), "nodes").want(t, exitNoQuorum, "1 of 3 nodes vote")
}

func TestInspect(t *testing.T) {
	t.Parallel()
	nodes, c := nodesAndUser(t, "web-3:4711")
	call(t, nodes.Addrs(), "inspect", "report").want(t, exitOK, "report: free")
	l := take(t, c, "report")
	everywhere(t, nodes, "report")
	call(t, nodes.Addrs(), "inspect", "report").want(t, exitOK, "held by web-3:4711, another",
		"3 of 3 nodes", fmt.Sprintf("fencing token %d", l.Token()))

	got := call(t, nodes.Addrs(), "-json", "inspect", "report")
	got.want(t, exitOK)
	line := objects(t, got.out)[0]
	left, _ := line["remaining_ms"].(float64)
	if line["held"] != true || line["holder"] != "web-3:4711" || left <= 0 || left > 60_000 ||
		len(line["per_node"].([]any)) != 3 || line["token"] != float64(l.Token()) {
		t.Errorf("got %v", line)
	}
	nodes[0].Redis().Del("report")
	nodes[1].Redis().Set("report", "a stranger's\x1b[31m")
	call(t, nodes.Addrs(), "inspect", "report").want(t, exitOK, "report: free",
		"on 1 of 3 nodes", "no end", `"a stranger's\x1b[31m"`)
	for _, n := range nodes[:2] {
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	call(t, nodes.Addrs(), "inspect", "report").want(t, exitNoQuorum, "too few nodes answer",
		"web-3:4711", "connection refused")
}

func TestFreeSaysWhatItWouldDoAndThenDoesIt(t *testing.T) {
	t.Parallel()
	nodes, c := nodesAndUser(t, "web-3:4711")
	call(t, nodes.Addrs(), "free", "report").want(t, exitNotHeld, "no node has a key")
	l := take(t, c, "report", redlock.WithoutRenewal())
	everywhere(t, nodes, "report")
	plan := call(t, nodes.Addrs(), "free", "report")
	plan.want(t, exitOK, "would free the lock of web-3:4711, another", "on 3 of 3 nodes", "-yes -hold ")
	_, hold, _ := strings.Cut(strings.TrimSpace(plan.out), "-hold ")
	if err := l.Extend(t.Context()); err != nil {
		t.Errorf("free without -yes touched the lock: %v", err)
	}
	call(t, nodes.Addrs(), "free", "report", "-yes", "-hold", "0badf00d").want(t, exitHeld,
		"hold 0badf00d is over", "web-3:4711")
	if err := l.Extend(t.Context()); err != nil {
		t.Errorf("free of another hold touched the lock: %v", err)
	}

	nodes[2].Redis().Set("report", "somebody else's")
	got := call(t, nodes.Addrs(), "free", "-yes", "-hold", hold, "-json", "report")
	got.want(t, exitOK)
	lines := objects(t, got.out)
	if len(lines) != 3 || lines[0]["did"] != freed || lines[1]["did"] != freed ||
		lines[2]["did"] != leftAlone {
		t.Errorf("got %v", lines)
	}
	for i, want := range []bool{false, false, true} {
		if got := nodes[i].Redis().Exists("report"); got != want {
			t.Errorf("node %d has a key: %v, want %v", i, got, want)
		}
	}
	if err := l.Extend(t.Context()); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("Extend of the freed lock: got %v, want ErrLost", err)
	}
	call(t, nodes.Addrs(), "free", "report").want(t, exitOK, "less than a majority", "somebody else's")
}

// TestFreeLeavesAloneWhatChangedMeanwhile: between the look and the act the lock goes on to others.
func TestFreeLeavesAloneWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	nodes, c := nodesAndUser(t, "web-3:4711")
	take(t, c, "report", redlock.WithoutRenewal())
	everywhere(t, nodes, "report")
	token, err := nodes[0].Redis().Get("report")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[:2] {
		n.Redis().Set("report", "ql1:web-4:1/x")
	}
	nodes[2].Redis().Del("report")
	engine, err := quorumOf(nodes.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	var out bytes.Buffer
	tool := &tool{out: printer{w: &out}}
	lines := make([]freeLine, 3)
	err = tool.freeNow(t.Context(), engine, "report", token, 0b111, lines)
	if !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	for i, want := range []string{changed, changed, gone} {
		if lines[i].Did != want {
			t.Errorf("node %d: %s, want %s", i, lines[i].Did, want)
		}
	}
	for _, n := range nodes[:2] {
		if got, _ := n.Redis().Get("report"); got != "ql1:web-4:1/x" {
			t.Errorf("the new holder's key is %q now", got)
		}
	}
}

func quorumOf(addrs []string) (*quorum.Engine, error) {
	var nodes []quorum.Node
	for _, addr := range addrs {
		n, err := quorum.Dial(addr, 2*time.Second)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return quorum.New(nodes, quorum.Settings{NodeTimeout: 2 * time.Second, MaxTTL: time.Minute,
		DriftFactor: 0.01, Clock: clock.System{}}), nil
}

func TestFreeWithoutAQuorumFreesNothing(t *testing.T) {
	t.Parallel()
	nodes, c := nodesAndUser(t, "web-3:4711")
	take(t, c, "report")
	everywhere(t, nodes, "report")
	for _, n := range nodes[:2] {
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	call(t, nodes.Addrs(), "free", "report", "-yes").want(t, exitNoQuorum)
	if !nodes[2].Redis().Exists("report") {
		t.Error("the key of the node that answers is gone")
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	nodes, c := nodesAndUser(t, "web-3:4711")
	ctx, cancel := context.WithCancel(t.Context())
	out := &told{more: make(chan struct{}, 1)}
	done := make(chan result)
	go func() {
		done <- callTo(ctx, out, nodes.Addrs(), "watch", "report", "-every", "5ms", "-json")
	}()
	out.await(t, `"is"`)
	l := take(t, c, "report", redlock.WithoutRenewal())
	out.await(t, `"taken"`)
	// A renewal shows when more is left than at the look before, which takes some time between them.
	out.await(t, `"renewed"`, func() {
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	out.await(t, `"event":"free"`)
	cancel()
	got := <-done
	got.want(t, exitOK)
	var events []any
	for _, line := range objects(t, got.out) {
		if line["event"] != "votes" { // a look may come while nodes are being asked
			events = append(events, line["event"])
		}
	}
	if text := fmt.Sprint(slices.Compact(events)); text != "[is taken renewed free]" {
		t.Errorf("events %s, want [is taken renewed free]\n%s", text, got.out)
	}
	call(t, nodes.Addrs(), "watch", "report", "-for", "2s").want(t, exitOK, "report: free")
	for _, n := range nodes[:2] {
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	call(t, nodes.Addrs(), "watch", "report", "-for", "2s").want(t, exitOK, "no quorum")
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	nodes := embedded.ForTest(t, 1)
	for _, args := range [][]string{{"nodes"}, {"nodes", "-json"}, {"watch", "a", "-for", "10s"}} {
		var errs bytes.Buffer
		args = append(args, "-addrs", nodes[0].Addr())
		if got := run(t.Context(), args, full{}, &errs); got != exitOther {
			t.Errorf("%q: exit status %d, want %d; %s", args, got, exitOther, &errs)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }
