package quorum

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/script"
)

// A message is what goes over the wire for a call of a batch, or for several that ask for the same
// with different locks.
type message struct {
	script *script.Script // of a single call
	calls  []int          // by index in the batch
	inFull bool           // with the script's text, unless one before it in the pipeline has it
	alone  bool           // with the text in any case

	one redis.StringCmd // where the answer comes: to a single call
	all redis.StringSliceCmd
}

// isMany reports whether it is a message for many locks.
func (m *message) isMany() bool { return len(m.calls) > 1 }

// runs is the script that the message runs.
func (m *message) runs() *script.Script {
	if m.isMany() {
		return &m.script.Many.Script
	}
	return m.script
}

// A wire is room for the messages and arguments of one batch, used again and again. go-redis keeps
// none of them once it has returned.
type wire struct {
	messages []*message
	args     []any
	texts    []string // sums of the scripts that went in full in this pipeline

	keys map[string]bool // that the messages are about

	kept bool // somebody may keep what was sent, so it is not used again
}

var wires = sync.Pool{New: func() any { return &wire{keys: make(map[string]bool)} }}

// wireFor is a wire to the node. Hooks of a user's client may keep the commands that they are
// shown.
func wireFor(n *RedisNode) *wire {
	if n.own {
		return wires.Get().(*wire)
	}
	return &wire{keys: make(map[string]bool), kept: true}
}

// Wires that have grown larger than this are not kept.
const (
	keepMessages = 64
	keepArgs     = 1 << 14
)

func (w *wire) free() {
	if w.kept || cap(w.messages) > keepMessages || cap(w.args) > keepArgs {
		return
	}
	for _, m := range w.messages[:cap(w.messages)] {
		if m != nil {
			*m = message{calls: m.calls[:0]}
		}
	}
	clear(w.args[:cap(w.args)])
	clear(w.keys)
	w.messages, w.args, w.texts = w.messages[:0], w.args[:0], w.texts[:0]
	wires.Put(w)
}

// add makes room for one message more.
func (w *wire) add(s *script.Script) *message {
	n := len(w.messages)
	if n < cap(w.messages) {
		w.messages = w.messages[:n+1]
	} else {
		w.messages = append(w.messages, nil)
	}
	if w.messages[n] == nil || w.kept {
		w.messages[n] = new(message)
	}
	m := w.messages[n]
	m.script, m.calls, m.inFull, m.alone = s, m.calls[:0], false, false
	return m
}

// pack makes messages of the batch's calls from one on, up to the first that is about the same lock
// as one before, and returns where it stopped: those have to wait until the messages have been
// answered, also those that have to be sent again. It does not matter in which order different
// locks come.
func (w *wire) pack(batch *Batch, from int) int {
	clear(w.keys)
	for i := from; i < len(batch.Calls); i++ {
		c := &batch.Calls[i]
		if !batch.Distinct {
			if w.keys[c.Command.Key] {
				return i
			}
			w.keys[c.Command.Key] = true
		}
		m := w.open(batch, c)
		if m == nil {
			m = w.add(c.Command.Script)
		}
		m.calls = append(m.calls, i)
	}
	return len(batch.Calls)
}

// open is the message that the call can join; nil: none.
func (w *wire) open(batch *Batch, c *Call) *message {
	if c.Command.Script.Many == nil {
		return nil
	}
	for k := len(w.messages) - 1; k >= 0; k-- {
		m := w.messages[k]
		if m.script != c.Command.Script || len(m.calls) >= script.MaxMany {
			continue
		}
		first := &batch.Calls[m.calls[0]]
		if first.Guarded == c.Guarded && c.Command.sharesWith(first.Command) {
			return m
		}
	}
	return nil
}

// sharesWith reports whether two commands of one script differ only in what is a lock's own.
func (c *Command) sharesWith(other *Command) bool {
	return c.Common == other.Common || slices.Equal(c.Common.Keys, other.Common.Keys) &&
		slices.Equal(c.Common.Args, other.Common.Args)
}

// keyCounts are the numbers of keys as wire arguments, made once.
var keyCounts = func() (all [3 * script.MaxMany]any) {
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return all
}()

// write makes the message's command.
func (w *wire) write(ctx context.Context, batch *Batch, m *message) redis.Cmder {
	first := &batch.Calls[m.calls[0]]
	begin := len(w.args)
	keys := w.fill(batch, m)
	args := w.args[begin:len(w.args):len(w.args)]
	if first.Guarded && batch.Identity != "" {
		args[scriptArgs+keys+identityArg] = batch.Identity
	}
	if w.kept {
		shown := make([]any, len(args))
		for i, arg := range args {
			shown[i] = plain(arg)
		}
		args = shown
	}
	// The text goes along once, for the first message that needs it: Redis runs a pipeline in
	// order, so those after it find the script in the cache.
	if runs := m.runs(); m.alone || m.inFull && !slices.Contains(w.texts, runs.SHA) {
		w.texts = append(w.texts, runs.SHA)
		args = append([]any{"eval", runs.Text}, args[2:]...)
	}
	if m.isMany() {
		m.all = *redis.NewStringSliceCmd(ctx, args...)
		return &m.all
	}
	m.one = *redis.NewStringCmd(ctx, args...)
	return &m.one
}

// scriptArgs is how many arguments of a command stand before the keys.
const scriptArgs = 3

// fill appends the message's arguments, and returns how many of them are keys.
func (w *wire) fill(batch *Batch, m *message) (keys int) {
	first, others := batch.Calls[m.calls[0]].Command.parts(), m.calls[1:]
	keys, ownKeys := m.script.Keys, len(first[0])
	keys += len(others) * ownKeys
	w.args = append(w.args, "evalsha", m.runs().Arg, keyCounts[keys])
	w.args = append(append(w.args, first[0]...), first[1]...)
	for _, i := range others {
		w.args = append(w.args, batch.Calls[i].Command.Own[:ownKeys]...)
	}
	w.args = append(append(w.args, first[2]...), first[3]...)
	for _, i := range others {
		w.args = append(w.args, batch.Calls[i].Command.Own[ownKeys:]...)
	}
	return keys
}

// read puts the answer into the batch. The error is the connection's.
func (m *message) read(batch *Batch) error {
	if !m.isMany() {
		call := &batch.Calls[m.calls[0]]
		call.Reply, call.Err = m.one.Result()
		if errors.Is(call.Err, redis.Nil) {
			call.Err = errors.New("answered nonsense: nil")
			return nil
		}
		return ofConnection(call.Err)
	}
	replies, err := m.all.Result()
	if ofConnection(err) != nil {
		return err
	}
	if err == nil && len(replies) != len(m.calls)+1 {
		err = errBadMany
	}
	var done string // what most are answered, made once
	for k, i := range m.calls {
		call := &batch.Calls[i]
		call.Reply, call.Err = "", err
		if err != nil || replies[k+1] == "" {
			continue
		}
		letter, rest := replies[k+1][:1], replies[k+1][1:]
		if rest != "" || letter[0] != script.Done {
			call.Reply = letter + replies[0] + rest
			continue
		}
		if done == "" {
			done = letter + replies[0]
		}
		call.Reply = done
	}
	return nil
}

// errBadMany is of a node that answered something else than a reply for each lock.
var errBadMany = errors.New("answered nonsense: not a reply for each lock")

func ofConnection(err error) error {
	if err == nil || isErrorReply(err) {
		return nil
	}
	return err
}

// again keeps those messages that have to be sent again: with the text, where the node had not got
// the script; and call by call, where one for many locks was answered with an error, which may be
// one lock's own. It comes to an end: each time a message goes more in full, or by itself.
func (w *wire) again(batch *Batch) {
	var alone []int
	kept := 0
	for k := range w.messages {
		m := w.messages[k]
		if !m.alone && isNoScript(batch.Calls[m.calls[0]].Err) {
			m.inFull, m.alone = true, m.inFull // the one before it may have ended in an error
			w.messages[kept], w.messages[k] = m, w.messages[kept]
			if w.kept {
				w.messages[kept] = &message{script: m.script, calls: m.calls, inFull: true, alone: m.alone}
			}
			kept++
			continue
		}
		for _, i := range m.calls {
			if c := &batch.Calls[i]; m.isMany() && (c.Err != nil || c.Reply == "") {
				alone = append(alone, i)
			}
		}
	}
	w.messages, w.texts = w.messages[:kept], w.texts[:0]
	for _, i := range alone {
		m := w.add(batch.Calls[i].Command.Script)
		m.calls, m.inFull = append(m.calls, i), true
	}
}
