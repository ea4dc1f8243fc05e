package fakenode_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

func TestKeysAreListedWithTheirEnds(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Set("b", "text", 0)
		b.SetHash("a", map[string]string{"field": "text"}, time.Minute)
		b.Set("c", "text", time.Second)
		pass(2 * time.Second)
		got := b.Keys()
		want := []fakenode.Key{
			{Name: "a", Hash: true, Left: 58 * time.Second, End: got[0].End},
			{Name: "b", Left: fakenode.NoEnd},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || !got[0].End.Equal(b.Now().Add(58*time.Second)) {
			b.Errorf("got %v, want %v", got, want)
		}
		if b.TTL("c") != fakenode.NoKey || b.Hash("a")["field"] != "text" || b.Hash("b") != nil {
			b.Error("a look at single keys says something else")
		}
		b.Delete("a")
		b.Delete("b")
		if got := b.Keys(); len(got) != 0 {
			b.Errorf("after deletion: got %v", got)
		}
	})
}

// An act between two messages of different senders is the finest that a scripted history needs.
func TestAHookActsExactlyBetweenMessages(t *testing.T) {
	inBubble(t, func(b *bench) {
		var once sync.Once
		b.OnExec(func(name string, args []string) {
			if name == "acquire" && args[3] == rival {
				once.Do(func() { b.StepClock(ttl + time.Second) })
			}
		})
		b.wants("+", 0, acquire(mine))
		b.wants("+", 0, acquire(rival)) // the step came just before it
		b.wants("-", 0, extend(mine))
	})
}

func TestAHookMaySendIfItDoesNotWait(t *testing.T) {
	inBubble(t, func(b *bench) {
		var once sync.Once
		var letters string
		b.OnExecuted(func(e fakenode.Executed) {
			once.Do(func() {
				go func() { letters, _ = b.ask(b.Node, acquire(rival)) }()
			})
		})
		b.wants("++", 0, acquire(mine), extend(mine))
		synctest.Wait()
		if letters != "-" {
			b.Errorf("got %q, want %q", letters, "-")
		}
	})
}

func TestRefusalsAreErrorReplies(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Refuse("NOAUTH Authentication required.")
		batch := batchOf(acquire(mine), release(mine))
		batch.WantReplication = true
		if err := b.Exec(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		for _, err := range []error{batch.Calls[0].Err, batch.Calls[1].Err, batch.ReplicationErr} {
			var reply interface{ RedisError() }
			if !errors.As(err, &reply) || !strings.HasPrefix(err.Error(), "NOAUTH") {
				b.Errorf("got %v, want an error reply that says NOAUTH", err)
			}
		}
		if err := b.Exec(b.Context(), &quorum.Batch{}); err == nil {
			b.Error("PING: got no error")
		}
		b.Refuse("")
		b.Refuse("NOPERM no", "release")
		b.wants("+e", 0, acquire(mine), release(mine))
		b.Refuse("", "release")
		b.wants("+", 0, release(mine))
		if got := b.Counts(); got["acquire"] != 2 || got["release"] != 3 || got["ping"] != 1 {
			b.Errorf("counts: got %v", got)
		}
	})
}

func TestINFOCanBeRefusedAlone(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Refuse("NOPERM no permissions to run the 'info' command", "info")
		batch := batchOf(acquire(mine))
		batch.WantReplication = true
		if err := b.Exec(b.Context(), batch); err != nil || batch.ReplicationErr == nil {
			b.Errorf("got %v, %v; want an error reply to INFO", err, batch.ReplicationErr)
		}
		b.wantHolder(mine)
	})
}
