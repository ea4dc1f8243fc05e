package fakenode_test

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/fakenode"
)

func TestAReplicaHasItsMastersMemoryAndDoesNotWrite(t *testing.T) {
	inBubble(t, func(b *bench) {
		replica := fakenode.New("node 2")
		b.wants("+", 0, acquire(mine))
		replica.Demote(b.Node)
		on := &bench{b.T, replica}
		if on.Identity() != b.Identity() {
			b.Error("the replica has another identity")
		}
		if text := on.replication(); !strings.Contains(text, "role:slave\r\n") {
			b.Errorf("INFO replication: got %q", text)
		}
		on.wants("-eee", 0, extend(rival), acquire(rival), extend(mine), release(mine))
		b.wants("+", 0, release(mine))
		on.wantHolder(mine)
		on.Promote()
		if text := on.replication(); on.Identity() == b.Identity() ||
			!strings.Contains(text, "role:master\r\n") ||
			!strings.Contains(text, "master_replid2:"+b.Identity()) {
			b.Errorf("after the promotion: got %q", text)
		}
		on.wants("++", 0, extend(mine), release(mine))
	})
}

func TestINFOSpeaksOfReplicas(t *testing.T) {
	inBubble(t, func(b *bench) {
		if text := b.replication(); !strings.Contains(text, "connected_slaves:0\r\n") ||
			strings.Contains(text, "min_slaves") {
			b.Errorf("got %q", text)
		}
		b.ShowReplicas(2, true)
		if text := b.replication(); !strings.Contains(text, "connected_slaves:2\r\n") ||
			!strings.Contains(text, "min_slaves_good_slaves:2\r\n") {
			b.Errorf("got %q", text)
		}
	})
}

func TestAFullNodeStillProlongsAndFrees(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		b.SetFull(true)
		b.wants("e++e", 0, acquire(rival), extend(mine), release(mine), acquire(rival))
		b.SetFull(false)
		b.wants("+", 0, acquire(rival))
	})
}
