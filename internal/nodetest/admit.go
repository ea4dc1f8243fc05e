package nodetest

import (
	"maps"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// admitClaims are about admit.lua. Nodes here have no replicas, so that the lag counts nothing.
var admitClaims = []claim{
	{"a look says whether anybody admitted the memory", func(a *asker) {
		if got := a.text(Admit(a.keys, time.Minute, 0, "look")); got != "x0" {
			a.Errorf("got %q, want x0", got)
		}
		a.admit(identityA, 0, 0, time.Second)
		if got := a.text(Admit(a.keys, time.Minute, 0, "look")); got != "x1" {
			a.Errorf("got %q, want x1", got)
		}
	}},
	{"without INFO replication there is no admission", func(a *asker) {
		if !a.NoReplication {
			return
		}
		for _, mode := range []string{"", "renew", "vote"} {
			a.fails(Admit(a.keys, time.Minute, 0, mode), "")
		}
		if ttl := a.Data.TTL(a.keys.Node); ttl != noKey {
			a.Errorf("TTL of the node's key: got %v, want no key", ttl)
		}
	}},
	{"a memory nobody knew begins now and votes after MaxTTL", admitting(func(a *asker) {
		reply := a.admits(time.Minute, "", script.Done)
		a.wantFresh(reply, time.Minute)
	})},
	{"a known memory is left as it is", admitting(func(a *asker) {
		first := a.admits(time.Minute, "", script.Done)
		a.wantSame(a.admits(time.Minute, "", script.Ours), first)
		a.wantFresh(first, time.Minute)
	})},
	{"a larger MaxTTL is written, makes it wait longer by as much, and raises the floor", admitting(func(a *asker) {
		first := a.admits(time.Minute, "", script.Done)
		fields := a.memory(first)
		if second := a.admits(time.Hour, "", script.Ours); second.MaxTTL != time.Hour {
			a.Errorf("max: got %v, want an hour", second.MaxTTL)
		}
		a.wantNode(longer(fields, "3600000", time.Hour-time.Minute))
	})},
	{"a smaller MaxTTL is not", admitting(func(a *asker) {
		fields := a.memory(a.admits(time.Minute, "", script.Done))
		if second := a.admits(time.Second, "", script.Ours); second.MaxTTL != time.Minute {
			a.Errorf("max: got %v, want a minute", second.MaxTTL)
		}
		a.wantNode(fields)
	})},
	{"another memory begins anew, and keeps the larger MaxTTL", admitting(func(a *asker) {
		a.admit(identityB, -time.Hour, -time.Minute, time.Minute)
		a.wantFresh(a.admits(time.Second, "", script.Done), time.Minute)
		a.admit(identityB, -time.Hour, -time.Minute, time.Second)
		a.wantFresh(a.admits(time.Minute, "", script.Done), time.Minute)
	})},
	{"a memory known in part begins anew", admitting(func(a *asker) {
		id := a.admits(time.Minute, "", script.Done).Identity
		for _, missing := range []string{"id", "since", "from", "max", "floor"} {
			fields := a.admit(id, -time.Hour, -time.Minute, time.Second)
			delete(fields, missing)
			a.Data.SetHash(a.keys.Node, fields, 0)
			a.wantFresh(a.admits(time.Minute, "", script.Done), time.Minute)
		}
	})},
	{"marks in the node's future are written anew", admitting(func(a *asker) {
		id := a.admits(time.Minute, "", script.Done).Identity
		a.admit(id, 30*time.Second, 30*time.Second, time.Minute)
		a.wantFresh(a.admits(time.Minute, "", script.Done), time.Minute)
		a.admit(id, -time.Minute, 2*time.Minute, time.Minute)
		a.wantFresh(a.admits(time.Minute, "", script.Done), time.Minute)
	})},
	{"a renewed memory begins anew", admitting(func(a *asker) {
		id := a.admits(time.Minute, "", script.Done).Identity
		a.admit(id, -time.Hour, -time.Minute, time.Minute)
		a.wantFresh(a.admits(time.Second, "renew", script.Done), time.Minute)
	})},
	{"who only wants to see writes nothing", admitting(func(a *asker) {
		if got := a.text(Admit(a.keys, time.Hour, 0, "see")); got != "x0" {
			a.Errorf("a memory nobody knew: got %q, want x0", got)
		}
		if ttl := a.Data.TTL(a.keys.Node); ttl != noKey {
			a.Errorf("TTL of the node's key: got %v, want no key", ttl)
		}
		first := a.admits(time.Minute, "", script.Done)
		a.wantSame(a.admits(time.Hour, "see", script.Ours), first)
		a.wantNode(a.memory(first))
		stale := a.admit(first.Identity, time.Hour, 2*time.Hour, time.Minute)
		a.admits(time.Hour, "see", script.Ours)
		a.wantNode(stale)
		stale = a.admit(identityB, -time.Hour, -time.Minute, time.Minute)
		if got := a.text(Admit(a.keys, time.Hour, 0, "see")); got != "x0" {
			a.Errorf("another memory: got %q, want x0", got)
		}
		a.wantNode(stale)
	})},
	{"an operator's word lets a new memory vote", admitting(func(a *asker) {
		reply := a.admits(time.Minute, "vote", script.Done)
		a.wantVoting(reply, micros(reply.Time), time.Minute)
	})},
	{"an operator's word lets a known memory vote", admitting(func(a *asker) {
		first := a.admits(time.Hour, "", script.Done)
		reply := a.admits(time.Minute, "vote", script.Done) // and lowers a wrong MaxTTL
		a.wantVoting(reply, micros(first.Since), time.Minute)
		again := a.admits(time.Minute, "", script.Ours)
		if again.From != 0 {
			a.Errorf("from: got %v, want 0 as before", again.From)
		}
	})},
	{"a string under the node's name is an error", admitting(func(a *asker) {
		a.Data.Set(a.keys.Node, "text", 0)
		a.fails(Admit(a.keys, time.Minute, 0, ""), "WRONGTYPE")
	})},
	{"from admission to vote", admitting(func(a *asker) {
		const short = 50 * time.Millisecond
		id := a.admits(short, "", script.Done).Identity
		w := a.guarded("ql1:me/1", id, short)
		a.acquire(w, script.Waits)
		a.eventually("the node votes", func() bool {
			reply, err := script.ParseAcquire(a.text(w.Command()))
			if err != nil {
				a.Fatal(err)
			}
			return reply.Letter == script.Done
		})
	})},
}

// admitting is a claim about nodes that answer INFO replication.
func admitting(check func(a *asker)) func(a *asker) {
	return func(a *asker) {
		if !a.NoReplication {
			check(a)
		}
	}
}

// admits wants an admission to be answered so, with the identity that INFO shows.
func (a *asker) admits(maxTTL time.Duration, mode string, letter byte) script.Reply {
	a.Helper()
	reply := a.parsed(Admit(a.keys, maxTTL, time.Hour, mode), script.ParseAdmit, letter)
	batch := &quorum.Batch{WantReplication: true}
	a.execBatch(batch)
	if !strings.Contains(batch.Replication, "master_replid:"+reply.Identity+"\r\n") {
		a.Errorf("identity: got %q, want that of %q", reply.Identity, batch.Replication)
	}
	return reply
}

// wantFresh wants the node's hash to say that the memory begins now.
func (a *asker) wantFresh(reply script.Reply, maxTTL time.Duration) {
	a.Helper()
	if reply.Since != reply.Time || reply.From != reply.Time+maxTTL || reply.MaxTTL != maxTTL {
		a.Errorf("got %+v, want since now, from %v later, max %v", reply, maxTTL, maxTTL)
	}
	a.wantNode(a.memory(reply))
}

// memory is the node's hash as an admission without an operator leaves it.
func (a *asker) memory(reply script.Reply) map[string]string {
	return map[string]string{
		"id":    reply.Identity,
		"since": digits(micros(reply.Since)),
		"from":  digits(micros(reply.From)),
		"max":   digits(uint64(reply.MaxTTL.Milliseconds())),
		"floor": digits(micros(reply.From)),
	}
}

// wantSame wants the reply to say the same of the node's memory as an earlier one.
func (a *asker) wantSame(got, earlier script.Reply) {
	a.Helper()
	got.Letter, got.Time = earlier.Letter, earlier.Time
	if got != earlier {
		a.Errorf("got %+v, want %+v", got, earlier)
	}
}

// wantVoting wants the node to vote at once, with tokens above all that it may have forgotten.
func (a *asker) wantVoting(reply script.Reply, since uint64, maxTTL time.Duration) {
	a.Helper()
	floor := micros(reply.Time + maxTTL)
	want := maps.Clone(a.memory(reply))
	want["since"], want["from"], want["floor"] = digits(since), "0", digits(floor)
	a.wantNode(want)
	if reply.From != 0 || reply.MaxTTL != maxTTL {
		a.Errorf("got %+v, want from 0, max %v", reply, maxTTL)
	}
	w := a.guarded("ql1:me/1", reply.Identity, maxTTL)
	if token := a.granted(w); token != floor {
		a.Errorf("token: got %d, want the floor, %d", token, floor)
	}
}
