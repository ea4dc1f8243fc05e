package quorum

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// Keys of a name. The register's key and the channel are derived from the lock's name with a
// mark that no name may begin with, so that no name's key is another name's register.
func (e *Engine) lockKey(name string) string     { return e.set.Prefix + name }
func (e *Engine) nameOf(key string) string       { return key[len(e.set.Prefix):] }
func (e *Engine) registerKey(name string) string { return e.set.Prefix + "ql:h:" + name }
func (e *Engine) channel(name string) string     { return e.set.Prefix + "ql:free:" + name }

// identityArg is where, behind the keys, a batch puts the identity of the node's memory into an
// acquire.
const identityArg = 6

// acquireMessage asks for the lock, or plants it. It goes on pointing to token and proposed.
func (e *Engine) acquireMessage(
	p *acquireParcel, name string, token *string, ttl time.Duration, proposed *uint64,
) *Command {
	p.Command = Command{Script: script.Acquire, Key: e.lockKey(name), Common: e.acquireCommon(ttl)}
	p.register = e.registerKey(name)
	p.own = [...]any{&p.Key, &p.register, token, proposed}
	p.Own = p.own[:]
	return &p.Command
}

// acquireCommon is what all acquires with this TTL have in common.
func (e *Engine) acquireCommon(ttl time.Duration) *Common {
	largest, last := e.largest.Load(), e.lastAcquire.Load()
	if last == nil || last.ttl != ttl || last.largest != largest {
		last = &acquireCommon{ttl: ttl, largest: largest, Common: Common{
			Keys: []any{e.args.node},
			Args: []any{ceilMillis(ttl), e.args.allowance, e.args.halfLife, e.args.life,
				"", e.args.maxTTL, largest.boxed},
		}}
		e.lastAcquire.Store(last)
	}
	return &last.Common
}

// An acquireCommon is kept, as mostly all locks have the same TTL.
type acquireCommon struct {
	ttl     time.Duration
	largest *millis
	Common
}

// claimMessage asks for the claim lock of a job, for a tick.
func (e *Engine) claimMessage(c Claim, proposed uint64) *Command {
	key := e.lockKey(c.Name)
	return newCommand(script.Claim, key,
		key, e.registerKey(c.Name), e.args.node,
		c.Token, proposed, ceilMillis(c.TTL), e.args.allowance, e.args.halfLife, ceilMillis(c.Life+registerStep),
		"", e.args.maxTTL, e.largest.Load().boxed, c.Tick)
}

// commitMessage puts a tick on record.
func (e *Engine) commitMessage(c Commit) *Command {
	key := e.lockKey(c.Name)
	return newCommand(script.Commit, key, key, e.registerKey(c.Name),
		c.Token, c.Tick, c.Fencing, c.State, ceilMillis(c.Grace), ceilMillis(c.Life+registerStep), c.From)
}

// confirmMessage asks whether a lease is still held, and moves the leader's mark.
func (e *Engine) confirmMessage(name, token string, reading int64, guard time.Duration) *Command {
	key := e.lockKey(name)
	return newCommand(script.Confirm, key, key, e.registerKey(name),
		token, reading, ceilMillis(guard), e.args.life)
}

// admitMessage settles from when a node's memory votes.
func (e *Engine) admitMessage(lag time.Duration, mode string) *Command {
	return newCommand(script.Admit, e.set.Prefix+"ql:node",
		e.args.node, e.args.maxTTL, ceilMillis(lag), mode)
}

// extendMessage prolongs the lock where the key is ours.
func (e *Engine) extendMessage(name, token string, ttl time.Duration, keepRegister bool) *Command {
	life := any("0")
	if keepRegister {
		life = e.args.life
	}
	key := e.lockKey(name)
	return &Command{Script: script.Extend, Key: key, Own: []any{key, e.registerKey(name), token},
		Common: &Common{Args: []any{ceilMillis(ttl), life}}}
}

// raiseMessage lifts the register.
func (e *Engine) raiseMessage(name, token string, fencing uint64) *Command {
	key := e.lockKey(name)
	return newCommand(script.Raise, key,
		key, e.registerKey(name), token, fencing, e.args.life)
}

// releaseMessage frees the lock where the key is ours, or leaves it there for keep.
func (e *Engine) releaseMessage(
	p *releaseParcel, name, token string, keep time.Duration,
) *Command {
	p.Command = Command{Script: script.Release, Key: e.lockKey(name), Common: freed}
	if keep > 0 {
		p.Common = &Common{Args: []any{ceilMillis(keep)}}
	}
	p.token, p.channel = token, e.channel(name)
	p.own = [...]any{&p.Key, &p.token, &p.channel}
	p.Own = p.own[:]
	return &p.Command
}

// freed is what releases have in common whose keys have to stay for no time.
var freed = &Common{Args: []any{"0"}}

// swapMessage hands the lock over from one owner token to another.
func (e *Engine) swapMessage(name, from, to string, ttl time.Duration) *Command {
	key := e.lockKey(name)
	return newCommand(script.Swap, key,
		key, e.registerKey(name), e.args.node, from, to, ceilMillis(ttl), e.args.life, e.args.maxTTL)
}

// inspectMessage asks what a node knows of a name.
func (e *Engine) inspectMessage(name string) *Command {
	key := e.lockKey(name)
	return newCommand(script.Inspect, key, key, e.registerKey(name))
}
