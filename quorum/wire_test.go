package quorum_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/internal/nodetest"
	"github.com/quorumlock/quorumlock/quorum"
)

// commandLog counts the scripts that a client sends, by command.
type commandLog map[string]int

func (l commandLog) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (l commandLog) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (l commandLog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			if strings.HasPrefix(c.Name(), "eval") {
				l[c.Name()]++
			}
		}
		return next(ctx, commands)
	}
}

// TestManyLocksInOneCall: a batch about many locks goes as few commands, a second time without
// texts, and what one lock cannot have is no other's trouble.
func TestManyLocksInOneCall(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: embedded.ForTest(t, 1)[0].Addr()})
	defer client.Close()
	log := commandLog{}
	client.AddHook(log)
	node := quorum.Wrap(client, "node", time.Second)
	const locks = 150
	send := func(command func(keys nodetest.Keys) *quorum.Command) string {
		t.Helper()
		clear(log)
		batch := &quorum.Batch{}
		for i := range locks {
			keys := nodetest.KeysOf("", fmt.Sprint(i))
			batch.Calls = append(batch.Calls, quorum.Call{Command: command(keys)})
		}
		if err := node.Exec(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		var letters strings.Builder
		for i := range batch.Calls {
			switch c := &batch.Calls[i]; {
			case c.Err != nil && strings.Contains(c.Err.Error(), "WRONGTYPE"):
				letters.WriteByte('E')
			case c.Err != nil || c.Reply == "":
				t.Errorf("call %d: %q, %v", i, c.Reply, c.Err)
			default:
				letters.WriteByte(c.Reply[0])
			}
		}
		return letters.String()
	}
	acquire := func(keys nodetest.Keys) *quorum.Command {
		return nodetest.Acquire{Keys: keys, Token: "ql1:me/1", TTL: time.Minute, Proposed: 1,
			Allowance: time.Second, HalfLife: time.Hour, Life: time.Hour, MaxTTL: time.Minute}.Command()
	}
	release := func(keys nodetest.Keys) *quorum.Command { return nodetest.Release(keys, "ql1:me/1", 0) }
	want := func(what, got, want string, commands map[string]int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
		if fmt.Sprint(map[string]int(log)) != fmt.Sprint(commands) {
			t.Errorf("%s: %v were sent, want %v", what, log, commands)
		}
	}

	all := strings.Repeat("+", locks)
	want("acquires", send(acquire), all, map[string]int{"evalsha": 3 + 2, "eval": 1})
	want("releases", send(release), all, map[string]int{"evalsha": 3 + 2, "eval": 1})
	want("again", send(acquire), all, map[string]int{"evalsha": 3})

	if err := client.Del(t.Context(), "70").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.HSet(t.Context(), "70", "field", "text").Err(); err != nil {
		t.Fatal(err)
	}
	spoiled := all[:70] + "E" + all[71:]
	want("one of another type", send(release), spoiled, map[string]int{"evalsha": 3, "eval": 1})
}

// TestCallsAboutOneLockKeepTheirOrder: also where the first has to be sent again, because the node
// has not got its script.
func TestCallsAboutOneLockKeepTheirOrder(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: embedded.ForTest(t, 1)[0].Addr()})
	defer client.Close()
	node := quorum.Wrap(client, "node", time.Second)
	keys := nodetest.KeysOf("", "a")
	if err := node.Exec(t.Context(), &quorum.Batch{Calls: []quorum.Call{
		{Command: nodetest.Release(keys, "ql1:me/1", 0)}}}); err != nil {
		t.Fatal(err)
	}
	batch := &quorum.Batch{Calls: []quorum.Call{
		{Command: nodetest.Extend(nodetest.KeysOf("", "b"), "ql1:me/1", time.Minute, 0)},
		{Command: nodetest.Acquire{Keys: keys, Token: "ql1:me/1", TTL: time.Minute, Proposed: 1,
			Allowance: time.Second, HalfLife: time.Hour, Life: time.Hour, MaxTTL: time.Minute}.Command()},
		{Command: nodetest.Release(keys, "ql1:me/1", 0)},
	}}
	if err := node.Exec(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if got := batch.Calls[2].Reply; got != "+" {
		t.Errorf("the release was answered %q, want what follows the acquire", got)
	}
	if n := client.Exists(t.Context(), "a").Val(); n != 0 {
		t.Error("the key is still there")
	}
}

// keeper keeps commands, as a hook may that formats them for a log later.
type keeper struct {
	commands []redis.Cmder
	args     []string // as they were
}

func (k *keeper) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (k *keeper) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (k *keeper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			k.commands, k.args = append(k.commands, c), append(k.args, fmt.Sprint(c.Args()))
		}
		return next(ctx, commands)
	}
}

// TestHooksMayKeepCommands: what a user's client was given is not used again for something else.
func TestHooksMayKeepCommands(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: embedded.ForTest(t, 1)[0].Addr()})
	defer client.Close()
	var kept keeper
	client.AddHook(&kept)
	node := quorum.Wrap(client, "node", time.Second)
	for round := range 3 {
		batch := &quorum.Batch{}
		for i := range 3 {
			keys := nodetest.KeysOf("", fmt.Sprint("name", round, i))
			batch.Calls = append(batch.Calls, quorum.Call{Command: nodetest.Release(keys, "ql1:me/1", 0)})
		}
		if err := node.Exec(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for i, was := range kept.args {
		if got := fmt.Sprint(kept.commands[i].Args()); got != was {
			t.Errorf("command %d became %.200q, was %.200q", i, got, was)
		}
	}
}

// answers puts words into a node's mouth: pipeline by pipeline what its commands are answered.
type answers struct {
	pipelines [][]string
}

func (a *answers) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, commands []redis.Cmder) error {
		texts := a.pipelines[0]
		a.pipelines = a.pipelines[1:]
		if len(texts) != len(commands) {
			return fmt.Errorf("got %d commands, want %d: %v", len(commands), len(texts), commands)
		}
		for i, c := range commands {
			if text := texts[i]; strings.HasPrefix(text, "NO") {
				c.SetErr(proto{text})
			} else {
				c.(*redis.StringCmd).SetVal(text)
			}
		}
		return nil
	}
}

func (a *answers) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (a *answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// proto is an error reply.
type proto struct{ text string }

func (e proto) Error() string { return e.text }
func (proto) RedisError()     {}

// TestEachPipelineProvesItsOwnVotes: a message that has to be sent again may go over another
// connection, and that to another server: what one pipeline's INFO says is no proof of another's
// votes (protocol review, rule 3).
func TestEachPipelineProvesItsOwnVotes(t *testing.T) {
	t.Parallel()
	info := func(identity string) string { return "role:master\r\nmaster_replid:" + identity + "\r\n" }
	acquire := func(name string, tick bool) quorum.Call {
		a := nodetest.Acquire{Keys: nodetest.KeysOf("", name), Token: "ql1:me/1", TTL: time.Minute,
			Proposed: 1, Allowance: time.Second, HalfLife: time.Hour, Life: time.Hour, MaxTTL: time.Minute}
		if tick { // another allowance, so that it is a message of its own
			a.Allowance = time.Minute
		}
		return quorum.Call{Command: a.Command(), Guarded: true}
	}
	const granted = "+ 1764403200 123457 1 2 3"
	for name, c := range map[string]struct {
		names     []string
		pipelines [][]string
	}{
		"NOSCRIPT": {[]string{"a", "b"}, [][]string{
			{granted, "NOSCRIPT No matching script.", info("old")}, {granted, info("new")}}},
		"the same lock twice": {[]string{"a", "a"}, [][]string{
			{granted, info("old")}, {granted, info("new")}}},
		"an error": {[]string{"a", "a"}, [][]string{
			{granted, "NOPERM no INFO for you"}, {granted, info("new")}}},
	} {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			defer client.Close()
			client.AddHook(&answers{pipelines: c.pipelines})
			batch := &quorum.Batch{Identity: "new", WantReplication: true}
			for i, name := range c.names {
				batch.Calls = append(batch.Calls, acquire(name, i > 0))
			}
			err := quorum.Wrap(client, "node", time.Second).Exec(t.Context(), batch)
			if err == nil && batch.ReplicationErr == nil && batch.Replication == info("new") {
				t.Errorf("all votes count for %q, want that the first pipeline's do not", batch.Replication)
			}
			if err != nil {
				t.Errorf("Exec: %v, want an answer", err)
			}
		})
	}
}

// TestFreeOfAnOutcome: a lock that was won can be given back by its outcome alone.
func TestFreeOfAnOutcome(t *testing.T) {
	inBubble(t, 3, func(l *lab) {
		out := l.won("a")
		out.Free()
		time.Sleep(time.Second)
		l.wantKeys("a", "afterwards", false, false, false)
		held := l.won("b")
		lost := l.acquire("b")
		lost.Free() // nothing to free: another's
		time.Sleep(time.Second)
		l.wantKeys("b", "after another's outcome was freed", true, true, true)
		l.release(hold("b", held))
	})
}
