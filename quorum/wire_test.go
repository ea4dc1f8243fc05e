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

// TestManyLocksInOneCall: a batch about many locks goes as few commands, a second time without texts,
// and what one lock cannot have is no other's trouble.
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

// TestCallsAboutOneLockKeepTheirOrder: also where the first has to be sent again, because the node has
// not got its script.
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
