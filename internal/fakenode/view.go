package fakenode

import (
	"errors"
	"maps"
	"slices"
	"strconv"
)

// An entry is what lies under a key: a string, or a hash.
type entry struct {
	text  string
	hash  map[string]string // nil: a string
	endMS int64             // since the epoch, by the node's clock; noEnd
}

// noEnd is the end of a key that has none; what is before the epoch has ended as well.
const noEnd = -1 << 63

// What PTTL says of a key that has no end, and of one that is not there.
const (
	pttlNoEnd = -1
	pttlNoKey = -2
)

// A view is the memory at one moment, as Redis' commands see it: the moment stands still while a
// script runs. After the first command that fails the others do nothing.
type view struct {
	entries  map[string]*entry
	now      int64 // us since the epoch
	readOnly bool
	full     bool
	err      error
}

// view is called with n.mu held.
func (n *Node) view() view {
	return view{entries: n.entries, now: n.clock.now().UnixMicro(),
		readOnly: n.identity.slave, full: n.full}
}

// A replyError is an error that the node itself answered: the connection is sound.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks it as go-redis marks its own.
func (replyError) RedisError() {}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

func (v *view) fail(text string) {
	if v.err == nil {
		v.err = errors.New(text)
	}
}

// find is the entry of a living key. An ended key goes, as Redis removes it when it is next seen.
func (v *view) find(key string) *entry {
	e := v.entries[key]
	if e != nil && e.endMS != noEnd && v.nowMS() > e.endMS {
		delete(v.entries, key)
		return nil
	}
	return e
}

func (v *view) nowMS() int64 { return v.now / 1000 }

// mayWrite reports whether a command that writes may run; grows: one that takes memory.
func (v *view) mayWrite(grows bool) bool {
	switch {
	case v.err != nil:
	case v.readOnly:
		v.fail("READONLY You can't write against a read only replica.")
	case v.full && grows:
		v.fail("OOM command not allowed when used memory > 'maxmemory'.")
	}
	return v.err == nil
}

// integer reads a number of milliseconds as a command does.
func (v *view) integer(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		v.fail("ERR value is not an integer or out of range")
	}
	return n, err == nil
}

func (v *view) get(key string) (string, bool) {
	if v.err != nil {
		return "", false
	}
	e := v.find(key)
	if e == nil {
		return "", false
	}
	if e.hash != nil {
		v.fail(wrongType)
		return "", false
	}
	return e.text, true
}

// set is SET PX: it writes over whatever is there.
func (v *view) set(key, text, px string) { v.write(key, text, px, false) }

// setNX is SET NX PX: it reports whether it set the key.
func (v *view) setNX(key, text, px string) bool { return v.write(key, text, px, true) }

func (v *view) write(key, text, px string, onlyNew bool) bool {
	if !v.mayWrite(true) {
		return false
	}
	ms, ok := v.integer(px)
	switch {
	case !ok:
		return false
	case ms <= 0:
		v.fail("ERR invalid expire time in 'set' command")
		return false
	case onlyNew && v.find(key) != nil:
		return false
	}
	v.entries[key] = &entry{text: text, endMS: v.nowMS() + ms}
	return true
}

func (v *view) pttl(key string) int64 {
	e := v.find(key)
	switch {
	case e == nil:
		return pttlNoKey
	case e.endMS == noEnd:
		return pttlNoEnd
	}
	return e.endMS - v.nowMS()
}

func (v *view) pexpire(key, px string) {
	if !v.mayWrite(false) {
		return
	}
	ms, ok := v.integer(px)
	e := v.find(key)
	switch {
	case !ok || e == nil:
	case ms <= 0:
		delete(v.entries, key)
	default:
		e.endMS = v.nowMS() + ms
	}
}

func (v *view) del(key string) {
	if v.mayWrite(false) {
		delete(v.entries, key)
	}
}

// hashOf is the hash under a key, nil if there is none.
func (v *view) hashOf(key string) *entry {
	if v.err != nil {
		return nil
	}
	e := v.find(key)
	if e != nil && e.hash == nil {
		v.fail(wrongType)
		return nil
	}
	return e
}

func (v *view) hget(key, field string) (string, bool) {
	e := v.hashOf(key)
	if e == nil {
		return "", false
	}
	text, ok := e.hash[field]
	return text, ok
}

// hmget is the fields' texts, and whether all of them are there.
func (v *view) hmget(key string, fields ...string) (texts []string, all bool) {
	texts, all = make([]string, len(fields)), true
	for i, field := range fields {
		text, ok := v.hget(key, field)
		texts[i], all = text, all && ok
	}
	return texts, all
}

func (v *view) hkeys(key string) []string {
	e := v.hashOf(key)
	if e == nil {
		return nil
	}
	return slices.Collect(maps.Keys(e.hash))
}

func (v *view) hdel(key, field string) {
	if e := v.hashOf(key); e != nil && v.mayWrite(false) {
		delete(e.hash, field)
	}
}

// hset takes pairs of a field and its text.
func (v *view) hset(key string, pairs ...string) {
	if !v.mayWrite(true) {
		return
	}
	e := v.hashOf(key)
	if v.err != nil {
		return
	}
	if e == nil {
		e = &entry{hash: make(map[string]string), endMS: noEnd}
		v.entries[key] = e
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		e.hash[pairs[i]] = pairs[i+1]
	}
}
