package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// calls finds what a script calls, by the names that our scripts have for redis.call.
var calls = regexp.MustCompile(`\bp?call\(\s*['"](\w+)['"]`)

// What a script calls is counted by a node like what a client sends: of a command that both do, the
// count is wrong. The one exception is admission's INFO: a node is admitted at first contact, and after
// trouble, not while commands are counted (TestTheCountIsWhatOurClientSends).
func TestNoScriptOfOursCallsWhatIsCountedAsSent(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("../../internal/script/*.lua")
	if err != nil || len(scripts) < 10 {
		t.Fatalf("scripts: got %q, %v", scripts, err)
	}
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := calls.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: found no calls, does it call by another name?", file)
		}
		for _, call := range found {
			command := strings.ToLower(call[1])
			admission := filepath.Base(file) == "admit.lua" && command == "info"
			if slices.Contains(fromClients, command) && !admission {
				t.Errorf("%s calls %s, which is counted as sent by a client", filepath.Base(file), command)
			}
		}
	}
}

// sentBy counts what a client sends, at the client.
type sentBy struct {
	mu     sync.Mutex // guards counts
	counts commandCount
}

func (s *sentBy) note(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cmds {
		s.counts[c.Name()]++
	}
}

func (s *sentBy) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
}

// of is how often a command was sent, all how many there were.
func (s *sentBy) of(command string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[command]
}

func (s *sentBy) all() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, count := range s.counts {
		n += count
	}
	return n
}

func (s *sentBy) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

func (s *sentBy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.note(cmd)
		return next(ctx, cmd)
	}
}

func (s *sentBy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.note(cmds...)
		return next(ctx, cmds)
	}
}

// INFO is sent by our client, behind each acquire in the same pipeline: what it sends by its own count
// is what the nodes are said to have been sent. So a lock and its unlock, alone, are three commands a
// node.
func TestTheCountIsWhatOurClientSends(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	nodes := redisproc.ForTest(t, 3)
	if err := admit(ctx, nodes.Addrs()); err != nil {
		t.Fatal(err)
	}
	sent := &sentBy{counts: commandCount{}}
	o := &ours{own: dialAll(nodes.Addrs(), nil)}
	for _, c := range o.own {
		c.AddHook(sent)
	}
	if err := connect(ctx, o.own, delayedConns); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.client, err = redlock.New(redlock.Config{Clients: o.own}); err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := pair(ctx, o, "warm up"); err != nil {
		t.Fatal(err)
	}
	pause(ctx, settle)
	sent.reset()
	if err := forgetCommands(ctx, nodes); err != nil {
		t.Fatal(err)
	}
	const pairs = 20
	for range pairs {
		if err := pair(ctx, o, "pair"); err != nil {
			t.Fatal(err)
		}
	}
	pause(ctx, settle)
	counted, err := countCommands(ctx, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"evalsha", "info"} {
		if got, want := counted[command], sent.of(command); got != want || want < pairs*int64(len(nodes)) {
			t.Errorf("%s: counted %d, want %d, and one a node and pair at least", command, got, want)
		}
	}
	if got, want := counted.sent(nil), sent.all(); got != want {
		t.Errorf("counted %d in all, want the %d that were sent: %v", got, want, counted)
	}
}
