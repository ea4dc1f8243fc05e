// Package script holds the texts that run inside Redis, and what they answer.
//
// Each script is a file of its own, with its keys, arguments and replies in the comment at its
// head. Texts are constant, sent by EVALSHA; NOSCRIPT is answered by EVAL. They have no `#!lua`
// line, because a server at maxmemory refuses such scripts even if all they do is free a key.
// Replies are one short string and arguments are shared between the nodes: with go-redis that
// costs about two allocations a command, against fifteen for an array with arguments of its own.
//
// In reading order: larger.lua, node.lua, acquire.lua, extend.lua, raise.lua, release.lua,
// swap.lua, inspect.lua, admit.lua; claim.lua, commit.lua, confirm.lua; many.go, reply.go, mark.go.
package script

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// A Script is one text with the name that Redis caches it under.
type Script struct {
	Name string
	Text string
	SHA  string // of Text, in hexadecimal, as EVALSHA wants it
	Keys int    // how many of the arguments are keys
	Arg  any    // SHA, made an argument once

	Timed bool // its replies carry the node's time after the letter

	// Many does the same for many locks in one call, and answers an array; nil: there is none. In a
	// busy batch that spares the node most of its work, which is to set a script up.
	Many *Many
}

//go:embed larger.lua
var largerText string

//go:embed node.lua
var nodeText string

//go:embed acquire.lua
var acquireText string

//go:embed extend.lua
var extendText string

//go:embed raise.lua
var raiseText string

//go:embed release.lua
var releaseText string

//go:embed admit.lua
var admitText string

//go:embed inspect.lua
var inspectText string

//go:embed swap.lua
var swapText string

//go:embed claim.lua
var claimText string

//go:embed commit.lua
var commitText string

//go:embed confirm.lua
var confirmText string

// The scripts of ticks and of leaders. A claim is an acquire with more around it, and shares its
// text.
var (
	Claim   = timed(newScript("claim", largerText+nodeText+acquireText+claimText, 3))
	Commit  = newScript("commit", commitText, 2)
	Confirm = timed(newScript("confirm", confirmText, 2))
)

// The scripts of a lock, and Admit of a node.
var (
	Acquire = timed(bundled("acquire", largerText+nodeText+acquireText, shape{keys: 3, args: 9, ownKeys: 2, ownArgs: 2}))
	Extend  = timed(bundled("extend", extendText, shape{keys: 2, args: 3, ownKeys: 2, ownArgs: 1}))
	Raise   = newScript("raise", raiseText, 2)
	Release = bundled("release", releaseText, shape{keys: 1, args: 3, ownKeys: 1, ownArgs: 2})
	Swap    = timed(newScript("swap", largerText+swapText, 3))
	Inspect = timed(newScript("inspect", inspectText, 2))
	Admit   = newScript("admit", largerText+admitText, 1)
)

func newScript(name, text string, keys int) *Script {
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	return &Script{Name: name, Text: text, SHA: sha, Keys: keys, Arg: sha}
}

func timed(s *Script) *Script {
	s.Timed = true
	return s
}
