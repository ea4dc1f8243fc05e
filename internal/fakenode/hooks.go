package fakenode

import "maps"

// hooks are a test's eyes between messages.
type hooks struct {
	before func(script string, args []string)
	after  func(Executed)
}

// Executed is a command and what it was answered, whether or not the answer arrives.
type Executed struct {
	Node   *Node
	Script string
	Args   []string // keys first
	Reply  string
	Err    error
}

// OnExec calls f before each command, on the goroutine that executes it. Nothing else is executed
// meanwhile. f may look at the node and do anything to it and to others, but must not wait for an
// answer of this node. If it restarts the node, the rest of the batch is lost. Nil: no hook.
func (n *Node) OnExec(f func(script string, args []string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hooks.before = f
}

// OnExecuted calls f after each command, in the same way.
func (n *Node) OnExecuted(f func(Executed)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hooks.after = f
}

// Counts says how many commands of each script the node has seen, refused ones included; "info"
// and "ping" are counted as well.
func (n *Node) Counts() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}

// Count is one of the Counts.
func (n *Node) Count(script string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[script]
}

// Refuse answers commands with this error text, such as "NOAUTH Authentication required.": all of
// them, or only those of the named scripts; "info" and "ping" name the others. An empty text
// lifts the refusal of what is named, and of everything if nothing is.
func (n *Node) Refuse(text string, scripts ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(scripts) == 0 {
		n.refusals = refusals{all: text}
		return
	}
	only := maps.Clone(n.refusals.only)
	if only == nil {
		only = make(map[string]string)
	}
	for _, name := range scripts {
		only[name] = text
	}
	n.refusals.only = only
}

// refusals are the errors that commands are answered with.
type refusals struct {
	all  string
	only map[string]string // by script
}

func (r refusals) of(script string) error {
	text := r.all
	if text == "" {
		text = r.only[script]
	}
	if text == "" {
		return nil
	}
	return replyError(text)
}

func (n *Node) before(c call) {
	n.mu.Lock()
	f := n.hooks.before
	n.mu.Unlock()
	if f != nil {
		f(c.script.Name, c.args)
	}
}

func (n *Node) after(c call, r reply) {
	n.mu.Lock()
	f := n.hooks.after
	n.mu.Unlock()
	if f != nil {
		f(Executed{Node: n, Script: c.script.Name, Args: c.args, Reply: r.text, Err: r.err})
	}
}
