package fakenode

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// What TTL says of a key without an end, and of one that is not there.
const (
	NoEnd time.Duration = -1
	NoKey time.Duration = -2
)

// A Key is a key that lives, and when it ends.
type Key struct {
	Name string
	Hash bool
	Left time.Duration // NoEnd if it has none
	End  time.Time     // by the node's clock; zero if it has none
}

// Keys lists what lives in the node, sorted by name. It is what the invariant is asked of that no
// key but ql:node is without an end.
func (n *Node) Keys() []Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view()
	var keys []Key
	for name := range n.entries {
		e := v.find(name)
		if e == nil {
			continue
		}
		key := Key{Name: name, Hash: e.hash != nil, Left: left(&v, name)}
		if e.endMS != noEnd {
			key.End = time.UnixMilli(e.endMS)
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

// Get is the text of a string, and whether there is one.
func (n *Node) Get(key string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view()
	return v.get(key)
}

// HGet is a field of a hash, and whether there is one.
func (n *Node) HGet(key, field string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view()
	return v.hget(key, field)
}

// Hash is a copy of a hash, nil if there is none.
func (n *Node) Hash(key string) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view()
	e := v.hashOf(key)
	if e == nil {
		return nil
	}
	return maps.Clone(e.hash)
}

// TTL is what a key has left by the node's clock; NoEnd or NoKey.
func (n *Node) TTL(key string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view()
	return left(&v, key)
}

func left(v *view, key string) time.Duration {
	switch ms := v.pttl(key); ms {
	case pttlNoKey:
		return NoKey
	case pttlNoEnd:
		return NoEnd
	default:
		return time.Duration(ms) * time.Millisecond
	}
}

// Set writes a string over whatever is there, as anybody might. A TTL of zero gives no end.
func (n *Node) Set(key, text string, ttl time.Duration) {
	n.put(key, &entry{text: text}, ttl)
}

// SetHash writes a hash over whatever is there. A TTL of zero gives no end.
func (n *Node) SetHash(key string, fields map[string]string, ttl time.Duration) {
	hash := maps.Clone(fields)
	if hash == nil {
		hash = make(map[string]string)
	}
	n.put(key, &entry{hash: hash}, ttl)
}

// Delete removes a key.
func (n *Node) Delete(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.entries, key)
}

func (n *Node) put(key string, e *entry, ttl time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.endMS = noEnd
	if ttl > 0 {
		e.endMS = n.clock.now().UnixMilli() + ttl.Milliseconds()
	}
	n.entries[key] = e
}
