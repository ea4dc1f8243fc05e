package nodetest

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/internal/script"
)

func TestFakeNodeThatIsFull(t *testing.T) {
	t.Parallel()
	node := fakenode.New("fake")
	checkFull(t, Subject{Node: node, Data: node}, func() { node.SetFull(true) })
}

func TestRedisThatIsFull(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	server := redisproc.ForTest(t, 1)[0]
	subject, _ := overRedis(t, server.Addr())
	checkFull(t, subject, func() {
		if _, err := server.Do(t.Context(), "CONFIG", "SET", "maxmemory", "1"); err != nil {
			t.Fatal(err)
		}
	})
}

// checkFull wants a node at its maxmemory to prolong and to free, and to refuse what would need
// memory: finding F5 of the protocol's review.
func checkFull(t *testing.T, s Subject, fill func()) {
	t.Helper()
	a := newAsker(t, s)
	free := a.named("free")
	w := a.wish("ql1:me/1")
	a.acquire(w, script.Done)

	fill()
	a.fails(free.wish("ql1:me/1").Command(), "OOM")
	free.wantHolder("")
	a.fails(Raise(a.keys, w.Token, w.Proposed+1, week), "OOM")
	a.fails(Swap(a.keys, w.Token, "ql1:me/2", time.Hour, week), "OOM")
	a.fails(Commit(a.keys, w.Token, 1000, 1, time.Hour, week), "OOM")
	a.fails(a.confirmation(w.Token, a.now()), "OOM")
	a.fails(Admit(a.keys, time.Minute, 0, ""), "OOM")
	a.wantHolder(w.Token)
	a.wantRegister(digits(w.Proposed))

	a.extend(w.Token, time.Hour, 2*week, script.Done)
	a.wantTTL(a.keys.Lock, time.Hour)
	a.wantTTL(a.keys.Register, 2*week)
	a.inspect(script.Rival)
	a.keeps(w.Token, time.Minute)
	a.wantTTL(a.keys.Lock, time.Minute)
	a.release(w.Token, script.Done)
	a.wantHolder("")
}
