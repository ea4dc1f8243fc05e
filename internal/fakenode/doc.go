// Package fakenode is a Redis node in memory that loses, delays, repeats and forgets on command,
// so that everything timed can be tested in the virtual time of testing/synctest.
//
// Limits. It knows the library's own scripts and nothing else: what each does is written in Go, one
// function in a table per script, and internal/nodetest holds both to the same suite. A message
// is executed in an instant. A restarted node still receives what was on its way to the old
// process, as if every client repeated it: worse than TCP, on purpose.
//
// The model:
//
//	engine -> Link.Exec ~~ request ~~> inbox -> scripts -> memory      (Node)
//	engine <- Link.Exec <~~~ reply ~~~~~~~~~~~~~~~~~~~'
//	          heard     <~~ published ~~~~~~~~~~~~~~~~'
//
// A Node is the server; it can be asked as it is, or through Links, one per client. Faults of the
// way exist twice: a Node's hold for everybody, a Link's for its own messages, on top. Faults of
// the machine (pause, restart, clock) are the Node's. Everything may be set at any time.
//
// A message lives apart from its sender: it is executed when it arrives, though the sender may
// have given up long ago; until then it is the sender's goroutine that waits, and no other.
// Whoever brings a message to an idle node executes what is in its inbox.
//
// Files in reading order: node.go, link.go, message.go, faults.go, chance.go, restart.go,
// replica.go, describe.go, clock.go, script.go, acquire.go, holder.go, admit.go, tick.go, view.go,
// data.go, info.go, listener.go, pipe.go, hooks.go.
package fakenode
