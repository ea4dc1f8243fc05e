package quorum

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// Keys of a name. The register's key and the channel are derived from the lock's name with a
// mark that no name may begin with, so that no name's key is another name's register.
func (e *Engine) lockKey(name string) string     { return e.set.Prefix + name }
func (e *Engine) registerKey(name string) string { return e.set.Prefix + "ql:h:" + name }
func (e *Engine) channel(name string) string     { return e.set.Prefix + "ql:free:" + name }

// identityArg is where, behind the keys, a batch puts the identity of the node's memory into an
// acquire.
const identityArg = 6

// acquireMessage asks for the lock, or plants it.
func (e *Engine) acquireMessage(
	p *acquireParcel, name, token string, ttl time.Duration, proposed uint64,
) *Command {
	p.key, p.register, p.token = e.lockKey(name), e.registerKey(name), token
	p.fencing = proposed
	p.args = [...]any{nil, nil, nil,
		&p.key, &p.register, e.args.node,
		&p.token, &p.fencing, e.boxedTTL(ttl), e.args.allowance, e.args.halfLife, e.args.life,
		"", e.args.maxTTL, e.largest.Load().boxed}
	return p.fill(script.Acquire, p.key, p.args[:])
}

// claimMessage asks for the claim lock of a job, for a tick.
func (e *Engine) claimMessage(c Claim, proposed uint64) *Command {
	key := e.lockKey(c.Name)
	return newCommand(script.Claim, key, nil, nil, nil,
		key, e.registerKey(c.Name), e.args.node,
		c.Token, proposed, ceilMillis(c.TTL), e.args.allowance, e.args.halfLife, ceilMillis(c.Life+registerStep),
		"", e.args.maxTTL, e.largest.Load().boxed, c.Tick)
}

// commitMessage puts a tick on record.
func (e *Engine) commitMessage(c Commit) *Command {
	key := e.lockKey(c.Name)
	return newCommand(script.Commit, key, nil, nil, nil, key, e.registerKey(c.Name),
		c.Token, c.Tick, c.Fencing, c.State, ceilMillis(c.Grace), ceilMillis(c.Life+registerStep), c.From)
}

// confirmMessage asks whether a lease is still held, and moves the leader's mark.
func (e *Engine) confirmMessage(name, token string, reading int64, guard time.Duration) *Command {
	key := e.lockKey(name)
	return newCommand(script.Confirm, key, nil, nil, nil, key, e.registerKey(name),
		token, reading, ceilMillis(guard), e.args.life)
}

// admitMessage settles from when a node's memory votes.
func (e *Engine) admitMessage(lag time.Duration, mode string) *Command {
	return newCommand(script.Admit, e.set.Prefix+"ql:node", nil, nil, nil,
		e.args.node, e.args.maxTTL, ceilMillis(lag), mode)
}

// extendMessage prolongs the lock where the key is ours.
func (e *Engine) extendMessage(name, token string, ttl time.Duration, keepRegister bool) *Command {
	life := any("0")
	if keepRegister {
		life = e.args.life
	}
	key := e.lockKey(name)
	return newCommand(script.Extend, key, nil, nil, nil,
		key, e.registerKey(name), token, ceilMillis(ttl), life)
}

// raiseMessage lifts the register.
func (e *Engine) raiseMessage(name, token string, fencing uint64) *Command {
	key := e.lockKey(name)
	return newCommand(script.Raise, key, nil, nil, nil,
		key, e.registerKey(name), token, fencing, e.args.life)
}

// releaseMessage frees the lock where the key is ours, or leaves it there for keep.
func (e *Engine) releaseMessage(
	p *releaseParcel, name, token string, keep time.Duration,
) *Command {
	stay := any("0")
	if keep > 0 {
		stay = ceilMillis(keep)
	}
	p.key, p.token, p.channel = e.lockKey(name), token, e.channel(name)
	p.args = [...]any{nil, nil, nil, &p.key, &p.token, &p.channel, stay}
	return p.fill(script.Release, p.key, p.args[:])
}

// swapMessage hands the lock over from one owner token to another.
func (e *Engine) swapMessage(name, from, to string, ttl time.Duration) *Command {
	key := e.lockKey(name)
	return newCommand(script.Swap, key, nil, nil, nil,
		key, e.registerKey(name), e.args.node, from, to, ceilMillis(ttl), e.args.life, e.args.maxTTL)
}

// inspectMessage asks what a node knows of a name.
func (e *Engine) inspectMessage(name string) *Command {
	key := e.lockKey(name)
	return newCommand(script.Inspect, key, nil, nil, nil, key, e.registerKey(name))
}
