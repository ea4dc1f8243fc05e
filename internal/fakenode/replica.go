package fakenode

// Demote makes the node a replica of master: it takes over the data and the identity of its memory
// (a full resync), says so in INFO and refuses to write. Later changes of the master do not come,
// unless Demote is called again. Connections stay.
func (n *Node) Demote(master *Node) {
	data := master.Snapshot()
	master.mu.Lock()
	replid, replid2 := master.identity.replid, master.identity.replid2
	master.mu.Unlock()

	n.mu.Lock()
	defer n.mu.Unlock()
	n.entries = data.entries
	n.identity.slave = true
	n.identity.replid, n.identity.replid2 = replid, replid2
}

// Promote makes a replica a master, with what data it has and an identity of its own. Connections
// stay.
func (n *Node) Promote() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.identity.slave = false
	n.identity.promote(n.name)
}

// ShowReplicas makes INFO speak of so many connected replicas, and of a min-replicas-to-write if
// minToWrite. It does not change the identity.
func (n *Node) ShowReplicas(connected int, minToWrite bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.identity.replicas, n.identity.minToWrite = connected, minToWrite
}

// SetFull puts the node at its maxmemory: scripts that would write more are refused there; those
// that prolong and free are not.
func (n *Node) SetFull(full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.full = full
}
