package fakenode

import (
	"maps"
	"time"
)

// Pause freezes the process: requests pile up, whether or not their senders still wait. What is
// being executed at the moment comes to its end.
func (n *Node) Pause() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = true
}

// Resume executes what has piled up, in the order of arrival, before it returns.
func (n *Node) Resume() {
	n.mu.Lock()
	n.paused = false
	n.mu.Unlock()
	n.work()
}

// Forget restarts the process without its memory.
func (n *Node) Forget() { n.restart(func() { n.entries = make(map[string]*entry) }) }

// Restart restarts the process with all its data, as one that wrote everything to disk.
func (n *Node) Restart() { n.restart(func() {}) }

// RestartFromSnapshot restarts the process with the data of an earlier moment, or of another node.
func (n *Node) RestartFromSnapshot(s *Snapshot) {
	n.restart(func() { n.entries = copyEntries(s.entries) })
}

// A Snapshot is what lay in a node at some moment. It does not change.
type Snapshot struct{ entries map[string]*entry }

// Snapshot keeps the data as it is now.
func (n *Node) Snapshot() *Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &Snapshot{entries: copyEntries(n.entries)}
}

// Flush deletes everything, as FLUSHALL does: the process and the identity of its memory stay.
func (n *Node) Flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.entries)
}

// restart begins another life, as a primary. Connections break: what had arrived and was not
// executed is lost and its senders know, and listeners have to subscribe again.
func (n *Node) restart(load func()) {
	n.mu.Lock()
	load()
	n.lives++
	n.paused = false
	n.identity.renew(n.name)
	n.identity.slave = false
	if n.guardFor > 0 {
		n.beSilent(n.guardFor)
	}
	lost := n.inbox
	n.inbox = nil
	for l := range n.listeners {
		l.reconnect()
	}
	n.mu.Unlock()
	for _, m := range lost {
		if m.do == nil {
			m.reply(&answer{err: errReset})
		}
	}
}

// SilentFor makes the node give no vote for d from now on, by its own clock: every acquire is
// answered '~', and fencing registers that are not there count as the end of the silence. It is
// the restart guard in small, for clients that have none themselves. Zero ends a silence.
func (n *Node) SilentFor(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.beSilent(d)
}

// GuardFor makes every later restart, with or without memory, begin with a silence of d, before
// any message sees the restarted node.
func (n *Node) GuardFor(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.guardFor = d
}

// A silence is a time without votes, in microseconds of the node's clock. What it says about
// registers holds after its end.
type silence struct{ began, until int64 }

func (n *Node) beSilent(d time.Duration) {
	now := n.clock.now()
	n.silence = silence{began: now.UnixMicro(), until: now.Add(d).UnixMicro()}
}

func copyEntries(from map[string]*entry) map[string]*entry {
	to := make(map[string]*entry, len(from))
	for key, e := range from {
		twin := *e
		twin.hash = maps.Clone(e.hash)
		to[key] = &twin
	}
	return to
}
