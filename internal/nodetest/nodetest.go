package nodetest

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A Subject is a node under test, and a way past the scripts into its memory.
type Subject struct {
	Node quorum.Node
	Data Data

	// NoReplication says that the node refuses INFO replication.
	NoReplication bool

	// ForgetScripts empties the node's script cache at any time; nil if it has none.
	ForgetScripts func()
}

// Data is a node's memory. Failures end the test they happen in; a key of another type counts as
// one that is not there.
type Data interface {
	Get(key string) (text string, ok bool)
	HGet(key, field string) (text string, ok bool)
	TTL(key string) time.Duration            // -1: no end; -2: no such key
	Set(key, text string, ttl time.Duration) // zero: no end
	SetHash(key string, fields map[string]string, ttl time.Duration)
}

// What Data.TTL says of a key without an end, and of one that is not there.
const (
	noEnd time.Duration = -1
	noKey time.Duration = -2
)

// Run checks a node. open is called once per claim and may return the same node each time: every
// claim has names of its own.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for _, c := range forgetClaims {
		t.Run("scripts/"+c.name, func(t *testing.T) { c.check(newAsker(t, open(t))) })
	}
	for _, group := range []struct {
		name   string
		claims []claim
	}{
		{"acquire", acquireClaims},
		{"register", registerClaims},
		{"guard", guardClaims},
		{"admit", admitClaims},
		{"holder", holderClaims},
		{"tick", tickClaims},
		{"names", nameClaims},
		{"batch", batchClaims},
		{"listener", listenerClaims},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.claims {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.check(newAsker(t, open(t)))
				})
			}
		})
	}
}

// A claim is one thing that holds for every node.
type claim struct {
	name  string
	check func(*asker)
}
