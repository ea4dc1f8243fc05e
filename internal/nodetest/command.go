package nodetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// Keys are the keys and the channel of a lock.
type Keys struct{ Lock, Register, Node, Channel string }

// KeysOf makes the keys of a name as the engine does.
func KeysOf(prefix, name string) Keys {
	return Keys{Lock: prefix + name, Register: prefix + "ql:h:" + name,
		Node: prefix + "ql:node", Channel: prefix + "ql:free:" + name}
}

// Acquire is what acquire.lua is told.
type Acquire struct {
	Keys      Keys
	Token     string
	TTL       time.Duration
	Proposed  uint64
	Allowance time.Duration // d
	HalfLife  time.Duration // half the register's life
	Life      time.Duration // the register's
	Identity  string        // "": guard off, or for the batch to fill in
	MaxTTL    time.Duration // the client's
	Largest   time.Duration // the largest that it has seen on any node
}

// Command is the message.
func (a Acquire) Command() *quorum.Command {
	return Command(script.Acquire, a.words()...)
}

func (a Acquire) words() []any {
	return []any{a.Keys.Lock, a.Keys.Register, a.Keys.Node, a.Token,
		a.Proposed, a.TTL.Milliseconds(), a.Allowance.Microseconds(), a.HalfLife.Microseconds(),
		a.Life.Milliseconds(), a.Identity, a.MaxTTL.Milliseconds(), a.Largest.Milliseconds()}
}

// Admit makes the message of admit.lua. The mode is "renew", "vote", "look" or "".
func Admit(keys Keys, maxTTL, lag time.Duration, mode string) *quorum.Command {
	return Command(script.Admit, keys.Node, maxTTL.Milliseconds(), lag.Milliseconds(), mode)
}

// Extend makes the message of extend.lua. A life of zero leaves the register's.
func Extend(keys Keys, token string, ttl, life time.Duration) *quorum.Command {
	return Command(script.Extend, keys.Lock, keys.Register, token,
		ttl.Milliseconds(), life.Milliseconds())
}

// Raise makes the message of raise.lua.
func Raise(keys Keys, token string, fencing uint64, life time.Duration) *quorum.Command {
	return Command(script.Raise, keys.Lock, keys.Register, token, fencing, life.Milliseconds())
}

// Release makes the message of release.lua. The key stays for keep; mostly zero.
func Release(keys Keys, token string, keep time.Duration) *quorum.Command {
	return Command(script.Release, keys.Lock, token, keys.Channel, keep.Milliseconds())
}

// Swap makes the message of swap.lua, of a client whose MaxTTL is the TTL.
func Swap(keys Keys, from, to string, ttl, life time.Duration) *quorum.Command {
	return Command(script.Swap, keys.Lock, keys.Register, keys.Node, from, to,
		ttl.Milliseconds(), life.Milliseconds(), ttl.Milliseconds())
}

// Inspect makes the message of inspect.lua.
func Inspect(keys Keys) *quorum.Command {
	return Command(script.Inspect, keys.Lock, keys.Register)
}

// Claim makes the message of claim.lua, for the tick at this instant in ms.
func Claim(a Acquire, tick int64) *quorum.Command {
	return Command(script.Claim, append(a.words(), tick)...)
}

// Commit makes the message of commit.lua: the tick at this instant, in ms, is to run, and what
// bears no mark and came after half of that instant counts as passed over.
func Commit(
	keys Keys, token string, tick int64, fencing uint64, grace, life time.Duration,
) *quorum.Command {
	return Command(script.Commit, keys.Lock, keys.Register, token, tick, fencing, "run",
		grace.Milliseconds(), life.Milliseconds(), tick/2)
}

// Confirm makes the message of confirm.lua; the leader's clock reading is in ms.
func Confirm(keys Keys, token string, reading int64, guard, life time.Duration) *quorum.Command {
	return Command(script.Confirm, keys.Lock, keys.Register, token, reading,
		guard.Milliseconds(), life.Milliseconds())
}

// Command makes a message of any script: its keys, then its arguments.
func Command(s *script.Script, words ...any) *quorum.Command {
	c := &quorum.Command{Script: s, Own: words}
	if m := s.Many; m != nil {
		own := words[s.Keys:][:m.OwnArgs]
		c.Own = slices.Concat(words[:m.OwnKeys], own)
		c.Common = &quorum.Common{Keys: words[m.OwnKeys:s.Keys], Args: words[s.Keys+m.OwnArgs:]}
	}
	if len(words) > 0 {
		c.Key = fmt.Sprint(words[0])
	}
	return c
}
