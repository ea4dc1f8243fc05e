package nodetest

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// A pair is two nodes of which one can become the other's replica.
type pair struct {
	primary, replica Subject
	follow, promote  func()
}

func TestFakeReplica(t *testing.T) {
	t.Parallel()
	primary, replica := fakenode.New("primary"), fakenode.New("replica")
	checkReplica(t, pair{
		primary: Subject{Node: primary, Data: primary},
		replica: Subject{Node: replica, Data: replica},
		follow:  func() { primary.ShowReplicas(1, false); replica.Demote(primary) },
		promote: replica.Promote,
	})
}

func TestRedisReplica(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	servers := redisproc.ForTest(t, 2)
	primary, _ := overRedis(t, servers[0].Addr())
	replica, _ := overRedis(t, servers[1].Addr())
	be := func(of *redisproc.Node) func() {
		return func() {
			if err := servers[1].ReplicaOf(of); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkReplica(t, pair{primary: primary, replica: replica,
		follow: be(servers[0]), promote: be(nil)})
}

// checkReplica goes through the life of a replica, as far as the restart guard rests on it:
// findings G2 and G3 of the protocol's review.
func checkReplica(t *testing.T, p pair) {
	t.Helper()
	const maxTTL, lag = time.Minute, time.Hour
	primary, replica := newAsker(t, p.primary), newAsker(t, p.replica)
	replica.keys = primary.keys
	if got, want := primary.admits(maxTTL, "", script.Done), maxTTL; got.From-got.Since != want {
		t.Errorf("alone: waits %v, want %v", got.From-got.Since, want)
	}
	primary.Data.Set(primary.keys.Lock, "ql1:me/1", time.Minute)

	p.follow()
	reply := primary.admits(maxTTL, "renew", script.Done)
	if got, want := reply.From-reply.Since, maxTTL+lag; got != want {
		t.Errorf("with a replica: waits %v, want %v", got, want)
	}
	if info := replica.info(); !strings.Contains(info, "role:slave\r\n") ||
		!strings.Contains(info, "master_replid:"+reply.Identity+"\r\n") {
		t.Errorf("replica's INFO: got %q, want role:slave and the primary's identity", info)
	}
	replica.eventually("the replica has the lock", func() bool {
		text, _ := replica.Data.Get(replica.keys.Lock)
		return text == "ql1:me/1"
	})
	if got := replica.text(Admit(replica.keys, maxTTL, lag, "")); got != "r" {
		t.Errorf("admission of a replica: got %q, want r", got)
	}
	replica.extend("ql1:rival/1", time.Hour, week, script.Rival)
	for _, c := range []*quorum.Command{
		Extend(replica.keys, "ql1:me/1", time.Hour, week), replica.wish("ql1:rival/1").Command(),
		Release(replica.keys, "ql1:me/1", 0),
	} {
		replica.fails(c, "READONLY")
	}
	replica.wantHolder("ql1:me/1")

	p.promote()
	promoted := replica.admits(maxTTL, "", script.Done)
	if promoted.Identity == reply.Identity {
		t.Error("promoted: the identity is still the primary's")
	}
	if got, want := promoted.From-promoted.Since, maxTTL+lag; got != want {
		t.Errorf("promoted: waits %v, want %v", got, want)
	}
	replica.acquire(replica.guarded("ql1:rival/1", promoted.Identity, maxTTL), script.Waits)
	replica.release("ql1:me/1", script.Done)
}

// info is the answer to INFO replication.
func (a *asker) info() string {
	a.Helper()
	batch := &quorum.Batch{WantReplication: true}
	a.execBatch(batch)
	if batch.ReplicationErr != nil {
		a.Fatal(batch.ReplicationErr)
	}
	return batch.Replication
}
