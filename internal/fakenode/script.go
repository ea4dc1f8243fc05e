package fakenode

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// scripts is what each script does, written as its text is: the same commands in the same order,
// keys and arguments counted from 1.
var scripts = map[string]func(*run) string{
	script.Acquire.Name: acquire,
	script.Extend.Name:  extend,
	script.Raise.Name:   raise,
	script.Release.Name: release,
	script.Swap.Name:    swap,
	script.Inspect.Name: inspect,
	script.Admit.Name:   admit,
	script.Claim.Name:   claim,
	script.Commit.Name:  commit,
	script.Confirm.Name: confirm,
}

// A call is a command as it goes over the wire.
type call struct {
	script *script.Script
	args   []string // keys first
}

// identityWord is where an acquire keeps a place for the identity, keys counted.
const identityWord = 3 + 6

// newCall reads a command once, on its sender's side. An identity takes the place that the command
// keeps for it.
func newCall(c *quorum.Command, identity string) call {
	args := c.Words()
	if identity != "" && identityWord < len(args) {
		args[identityWord] = identity
	}
	return call{script: c.Script, args: args}
}

// A run is one execution of one script. A command that fails ends it, as in Lua: err is set and
// the commands after it do nothing, but what was done stays done.
type run struct {
	call
	view
	node      *Node // with its mu held
	published []publication
}

type publication struct{ channel, payload string }

// run executes a call. It is called with n.mu held.
func (n *Node) run(c call) (reply, []publication) {
	name := c.script.Name
	n.counts[name]++
	if err := n.refusals.of(name); err != nil {
		return reply{err: err}, nil
	}
	body := scripts[name]
	if body == nil {
		return reply{err: replyError("NOSCRIPT No matching script. Please use EVAL.")}, nil
	}
	r := &run{call: c, view: n.view(), node: n}
	text := body(r)
	if r.err != nil {
		where := fmt.Sprintf(" script: %s, on @user_script:1.", c.script.SHA)
		return reply{err: replyError(r.err.Error() + where)}, r.published
	}
	return reply{text: text}, r.published
}

func (r *run) key(i int) string { return r.word(i - 1) }
func (r *run) arg(i int) string { return r.word(r.script.Keys + i - 1) }

// word is what is sent empty where a test's command lacks it; Lua would see nil.
func (r *run) word(i int) string {
	if i < 0 || i >= len(r.args) {
		r.fail("ERR Lua redis lib command arguments must be strings or integers")
		return ""
	}
	return r.args[i]
}

// time is the answer to TIME, as text.
func (r *run) time() string {
	return strconv.FormatInt(r.now/1e6, 10) + " " + strconv.FormatInt(r.now%1e6, 10)
}

// number is Lua's tonumber, for what must be one.
func (r *run) number(text string) float64 {
	// Nearly all are integers, and ParseFloat makes a stack grow by a kilobyte.
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return float64(n)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		r.fail("ERR user_script:1: attempt to perform arithmetic on a nil value")
	}
	return f
}

// wireNumber is how a number of Lua's becomes an argument of a command: exact up to 17 digits.
func wireNumber(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e17 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// publish tells those who listen, once the script is through.
func (r *run) publish(channel, payload string) {
	if r.err == nil {
		r.published = append(r.published, publication{channel, payload})
	}
}
