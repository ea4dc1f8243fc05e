package nodetest

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

var batchClaims = []claim{
	{"calls run in their order", func(a *asker) {
		// A call that found no script runs after those that did, so each is made known first.
		a.named("warm").livesALife()
		mine, rival := a.wish("ql1:me/1"), a.wish("ql1:rival/1")
		rival.Proposed = mine.Proposed
		batch := a.exec(
			mine.Command(), rival.Command(), Extend(a.keys, mine.Token, time.Minute, week),
			Release(a.keys, mine.Token, 0), rival.Command(), Extend(a.keys, mine.Token, time.Minute, week))
		a.wantLetters(batch, "+-+++-")
		a.wantHolder(rival.Token)
		a.wantRegister(digits(mine.Proposed + 1))
	}},
	{"an error reply is one call's own", func(a *asker) {
		other := a.named("other")
		a.Data.SetHash(a.keys.Lock, map[string]string{"field": "text"}, 0)
		batch := a.exec(other.wish("ql1:me/1").Command(), a.wish("ql1:me/1").Command(),
			Release(other.keys, "ql1:me/1", 0))
		if err := batch.Calls[1].Err; err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			a.Errorf("second call: got %v, want WRONGTYPE", err)
		}
		batch.Calls = []quorum.Call{batch.Calls[0], batch.Calls[2]}
		a.wantLetters(batch, "++")
	}},
	{"a large batch is answered call by call", func(a *asker) {
		var commands []*quorum.Command
		for i := range 200 {
			commands = append(commands, a.named(digits(uint64(i))).wish("ql1:me/1").Command())
		}
		a.wantLetters(a.exec(commands...), strings.Repeat("+", len(commands)))
	}},
	{"an empty batch is answered", func(a *asker) { a.exec() }},
	{"a batch may be sent again", func(a *asker) {
		batch := &quorum.Batch{WantReplication: !a.NoReplication}
		batch.Calls = []quorum.Call{{Command: a.wish("ql1:me/1").Command()}}
		a.execBatch(batch)
		a.wantLetters(batch, "+")
		batch.Calls[0].Reply, batch.Replication = "", ""
		a.execBatch(batch)
		a.wantLetters(batch, "=")
		if !a.NoReplication {
			a.wantReplication(batch)
		}
	}},
	{"one command may be in many batches", sharesCommands},
	{"INFO replication comes with the batch", func(a *asker) {
		batch := &quorum.Batch{WantReplication: true}
		batch.Calls = []quorum.Call{{Command: a.wish("ql1:me/1").Command()}}
		a.execBatch(batch)
		a.wantLetters(batch, "+")
		a.wantReplication(batch)
	}},
	{"INFO replication comes alone", func(a *asker) {
		batch := &quorum.Batch{WantReplication: true}
		a.execBatch(batch)
		a.wantReplication(batch)
	}},
	{"INFO replication comes only if wanted", func(a *asker) {
		batch := a.exec(a.wish("ql1:me/1").Command())
		if batch.Replication != "" || batch.ReplicationErr != nil {
			a.Errorf("got %q, %v; want nothing", batch.Replication, batch.ReplicationErr)
		}
	}},
	{"a memory's identity stays", func(a *asker) {
		if a.NoReplication {
			return
		}
		var seen []string
		for range 2 {
			batch := &quorum.Batch{WantReplication: true}
			a.execBatch(batch)
			seen = append(seen, replid.FindString(batch.Replication))
		}
		if seen[0] == "" || seen[0] != seen[1] {
			a.Errorf("got %q", seen)
		}
	}},
	{"a context that ended ends the call", func(a *asker) {
		ctx, cancel := context.WithCancel(a.Context())
		cancel()
		batch := &quorum.Batch{Calls: []quorum.Call{{Command: a.wish("ql1:me/1").Command()}}}
		if err := a.Node.Exec(ctx, batch); err == nil {
			a.Error("got no error")
		}
	}},
	{"a node has a name", func(a *asker) {
		if a.Node.Name() == "" {
			a.Error("got none")
		}
	}},
}

var (
	replid = regexp.MustCompile(`(?m)^master_replid:[0-9a-f]{40}\r?$`)
	role   = regexp.MustCompile(`(?m)^role:master\r?$`)
)

// wantReplication wants INFO replication to be answered, or refused where the node does that.
func (a *asker) wantReplication(batch *quorum.Batch) {
	a.Helper()
	if a.NoReplication {
		if batch.ReplicationErr == nil {
			a.Errorf("got %q, want an error", batch.Replication)
		}
		return
	}
	if batch.ReplicationErr != nil {
		a.Fatal(batch.ReplicationErr)
	}
	if !role.MatchString(batch.Replication) || !replid.MatchString(batch.Replication) {
		a.Errorf("got %q, want role:master and an identity", batch.Replication)
	}
}

// wantLetters wants the calls' replies to begin so.
func (a *asker) wantLetters(batch *quorum.Batch, letters string) {
	a.Helper()
	var got strings.Builder
	for _, call := range batch.Calls {
		if call.Err != nil {
			a.Fatalf("%s: %v", call.Command.Script.Name, call.Err)
		}
		got.WriteString(call.Reply[:1])
	}
	if got.String() != letters {
		a.Errorf("replies: got %q, want %q", got.String(), letters)
	}
}

func sharesCommands(a *asker) {
	command := a.wish("ql1:me/1").Command()
	var mu sync.Mutex
	count := make(map[byte]int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			call := a.exec(command).Calls[0]
			if call.Err != nil {
				a.Error(call.Err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count[call.Reply[0]]++
		})
	}
	wg.Wait()
	if count[script.Done] != 1 || count[script.Ours] != 7 {
		a.Errorf("got %v, want one granted and seven ours", count)
	}
}
