package fakenode

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// noReplid is what Redis shows where there was no former identity.
const noReplid = "0000000000000000000000000000000000000000"

// An identity says whose memory this is, in the way of INFO.
type identity struct {
	serial     int
	runID      string // of the process
	replid     string // of the memory
	replid2    string // the memory's before a promotion
	slave      bool
	replicas   int
	minToWrite bool
}

// renew is what a new process does. No identity ever comes back, and they are the same in each run
// of a test.
func (id *identity) renew(name string) {
	id.serial++
	id.runID = sum(name, id.serial, "process")
	id.replid, id.replid2 = sum(name, id.serial, "memory"), noReplid
}

// promote is what a replica does that becomes a master.
func (id *identity) promote(name string) {
	id.serial++
	id.replid, id.replid2 = sum(name, id.serial, "memory"), id.replid
}

func sum(name string, serial int, what string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s/%d/%s", name, serial, what))
	return hex.EncodeToString(sum[:])
}

// Identity is the node's master_replid: of the primary's memory while it is a replica.
func (n *Node) Identity() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.identity.replid
}

// RunID is the identity of the process.
func (n *Node) RunID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.identity.runID
}

// infoLength is more than what INFO says of a node without replicas.
const infoLength = 320

// info is the answer to INFO replication. It is called with n.mu held.
func (n *Node) info() (string, error) {
	if err := n.refusals.of("info"); err != nil {
		return "", err
	}
	id := &n.identity
	var b strings.Builder
	b.Grow(infoLength)
	line := func(key, value string) { // it is asked for with every vote: no fmt
		b.WriteString(key)
		b.WriteByte(':')
		b.WriteString(value)
		b.WriteString("\r\n")
	}
	b.WriteString("# Replication\r\n")
	if id.slave {
		line("role", "slave")
		line("master_host", "127.0.0.1")
		line("master_port", "6379")
		line("master_link_status", "up")
	} else {
		line("role", "master")
	}
	line("connected_slaves", strconv.Itoa(id.replicas))
	if id.minToWrite {
		line("min_slaves_good_slaves", strconv.Itoa(id.replicas))
	}
	for i := range id.replicas {
		line(fmt.Sprintf("slave%d", i), "ip=127.0.0.1,port=6380,state=online,offset=14,lag=0")
	}
	line("master_failover_state", "no-failover")
	line("master_replid", id.replid)
	line("master_replid2", id.replid2)
	line("master_repl_offset", "0")
	line("second_repl_offset", "-1")
	return b.String(), nil
}
