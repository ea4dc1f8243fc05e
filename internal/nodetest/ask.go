package nodetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// patience is how long anything may take that is to happen at once.
const patience = 10 * time.Second

// week is a register's life, as the engine asks for it.
const week = 7 * 24 * time.Hour

// An asker asks a node about one name that nobody else uses, and fails the test if the answer is
// not as it should be.
type asker struct {
	*testing.T
	Subject
	keys Keys
}

func newAsker(t *testing.T, s Subject) *asker {
	t.Helper()
	return &asker{T: t, Subject: s, keys: KeysOf(rand.Text()+":", "job")}
}

// named is an asker about another name, under the same prefix.
func (a *asker) named(name string) *asker {
	prefix := strings.TrimSuffix(a.keys.Node, "ql:node")
	return &asker{T: a.T, Subject: a.Subject, keys: KeysOf(prefix, name)}
}

// exec sends commands as one batch.
func (a *asker) exec(commands ...*quorum.Command) *quorum.Batch {
	a.Helper()
	batch := &quorum.Batch{}
	for _, c := range commands {
		batch.Calls = append(batch.Calls, quorum.Call{Command: c})
	}
	a.execBatch(batch)
	return batch
}

func (a *asker) execBatch(batch *quorum.Batch) {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()
	if err := a.Node.Exec(ctx, batch); err != nil {
		a.Fatalf("Exec: %v", err)
	}
}

// text is the reply of one command that must not fail.
func (a *asker) text(c *quorum.Command) string {
	a.Helper()
	call := a.exec(c).Calls[0]
	if call.Err != nil {
		a.Fatalf("%s: %v", c.Script.Name, call.Err)
	}
	return call.Reply
}

// fails wants an error reply that begins with what, perhaps after words of the server's own.
func (a *asker) fails(c *quorum.Command, what string) {
	a.Helper()
	call := a.exec(c).Calls[0]
	if call.Err == nil || !strings.Contains(call.Err.Error(), what) {
		a.Errorf("%s: got reply %q, error %v; want an error that says %q",
			c.Script.Name, call.Reply, call.Err, what)
	}
	if call.Reply != "" {
		a.Errorf("%s: got reply %q beside an error", c.Script.Name, call.Reply)
	}
}

// wish is an acquire with the usual arguments.
func (a *asker) wish(token string) Acquire {
	return Acquire{Keys: a.keys, Token: token, TTL: 10 * time.Second, Proposed: proposal(),
		Allowance: 5 * time.Second, HalfLife: week / 2, Life: week, MaxTTL: 10 * time.Second}
}

// proposal is a fencing token as the engine proposes it.
func proposal() uint64 { return uint64(time.Now().UnixMicro()) }

// A parser takes the replies of a script apart.
type parser func(text string) (script.Reply, error)

// acquire wants a reply of this letter.
func (a *asker) acquire(w Acquire, letter byte) script.Reply {
	a.Helper()
	return a.parsed(w.Command(), script.ParseAcquire, letter)
}

func (a *asker) extend(token string, ttl, life time.Duration, letter byte) script.Reply {
	a.Helper()
	return a.parsed(Extend(a.keys, token, ttl, life), script.ParseExtend, letter)
}

func (a *asker) raise(token string, fencing uint64, letter byte) script.Reply {
	a.Helper()
	return a.parsed(Raise(a.keys, token, fencing, week), script.ParseRelease, letter)
}

func (a *asker) release(token string, letter byte) script.Reply {
	a.Helper()
	return a.parsed(Release(a.keys, token, 0), script.ParseRelease, letter)
}

func (a *asker) swap(from, to string, ttl time.Duration, letter byte) script.Reply {
	a.Helper()
	return a.parsed(Swap(a.keys, from, to, ttl, week), script.ParseExtend, letter)
}

func (a *asker) inspect(letter byte) script.Reply {
	a.Helper()
	return a.parsed(Inspect(a.keys), script.ParseInspect, letter)
}

func (a *asker) parsed(c *quorum.Command, parse parser, letter byte) script.Reply {
	a.Helper()
	text := a.text(c)
	reply, err := parse(text)
	if err != nil {
		a.Fatalf("%s: %v", c.Script.Name, err)
	}
	if reply.Letter != letter {
		a.Fatalf("%s: got %q, want a reply that begins with %q", c.Script.Name, text, letter)
	}
	return reply
}

// wantHolder wants the lock's key to be this token's; "" wants no key.
func (a *asker) wantHolder(token string) {
	a.Helper()
	got, ok := a.Data.Get(a.keys.Lock)
	if ok != (token != "") || got != token {
		a.Errorf("holder: got %q (there: %v), want %q", got, ok, token)
	}
}

// wantRegister wants exactly these digits in the register; "" wants none.
func (a *asker) wantRegister(digits string) {
	a.Helper()
	got, ok := a.Data.HGet(a.keys.Register, "token")
	if ok != (digits != "") || got != digits {
		a.Errorf("register: got %q (there: %v), want %q", got, ok, digits)
	}
}

// wantTTL wants what is left of a key to be at most d, and not much less: a test may be held up.
func (a *asker) wantTTL(key string, d time.Duration) {
	a.Helper()
	if got := a.Data.TTL(key); got > d || got <= d-patience/2 {
		a.Errorf("TTL: got %v, want %v or a little less", got, d)
	}
}

// eventually asks again until the answer is yes.
func (a *asker) eventually(what string, yes func() bool) {
	a.Helper()
	over := time.After(patience)
	for !yes() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-over:
			a.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// micros is a node's time as a register counts it.
func micros(d time.Duration) uint64 { return uint64(d.Microseconds()) }

func digits(n uint64) string { return fmt.Sprint(n) }
