package nodetest

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// tickClaims are about the scripts of ticks, claim and commit, and of leases, confirm.
var tickClaims = []claim{
	{"a claim is an acquire", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.Life = 10 * week
		reply, record := a.claim(w, a.now(), script.Done)
		if reply.Register != 0 || record != (script.Record{}) {
			a.Errorf("got %+v, %+v; want the proposed register and nothing on record", reply, record)
		}
		a.wantHolder(w.Token)
		a.wantTTL(a.keys.Lock, w.TTL)
		a.wantTTL(a.keys.Register, 10*week)
		a.wantRegister(digits(w.Proposed))
		a.claim(w, a.now(), script.Ours)
		for i, rival := range rivals {
			a := a.named("job" + digits(uint64(i)))
			a.Data.Set(a.keys.Lock, rival, time.Minute)
			reply, _ := a.claim(a.wish("ql1:me/1"), a.now(), script.Rival)
			if reply.Holder != rival {
				a.Errorf("holder: got %q, want %q", reply.Holder, rival)
			}
			a.wantMinute(reply.Left)
		}
	}},
	{"a claim before its instant takes nothing", func(a *asker) {
		a.Data.SetHash(a.keys.Register, map[string]string{"low": "7"}, week)
		tick := a.now() + time.Minute.Milliseconds()
		reply, record := a.claim(a.wish("ql1:me/1"), tick, script.Early)
		if reply.Time == 0 || record.Low != 7 {
			a.Errorf("got %+v, %+v; want TIME, and low 7", reply, record)
		}
		a.wantHolder("")
		a.wantRegister("")
	}},
	{"a claim obeys the guard", func(a *asker) {
		w := a.guarded("ql1:me/1", identityA, time.Minute)
		a.claim(w, a.now(), script.Unknown)
		a.admit(identityA, -time.Second, time.Minute, time.Minute)
		a.claim(w, a.now(), script.Waits)
		a.wantHolder("")
		a.admit(identityA, -time.Hour, -time.Minute, time.Minute)
		a.claim(w, a.now(), script.Done)
		w.Token = "ql1:me/2"
		w.Identity = ""
		batch := &quorum.Batch{Identity: identityB,
			Calls: []quorum.Call{{Command: Claim(w, a.now()), Guarded: true}}}
		a.execBatch(batch)
		a.wantLetters(batch, "!")
	}},
	{"a claim reads the mark of its tick", func(a *asker) {
		w := a.wish("ql1:me/1")
		tick := a.now()
		a.claim(w, tick, script.Done)
		a.commit("ql1:me/1", tick, sixteen, script.Done)
		want := script.Record{Mark: script.Mark{Fencing: sixteen, State: "run", Owner: "ql1:me/1"}}
		if _, got := a.claim(w, tick, script.Ours); got != want {
			a.Errorf("record: got %+v, want %+v", got, want)
		}
		if _, got := a.claim(w, tick-1, script.Ours); got != (script.Record{}) {
			a.Errorf("record of another tick: got %+v, want none", got)
		}
		a.release("ql1:me/1", script.Done)
		a.Data.Set(a.keys.Lock, "a\nrival", time.Minute)
		if _, got := a.claim(w, tick, script.Rival); got != want {
			a.Errorf("record beside a rival: got %+v, want %+v", got, want)
		}
	}},
	{"a commit needs the claim", func(a *asker) {
		a.commit("ql1:me/1", 1000, 1, script.Nobody)
		for _, rival := range rivals {
			a.Data.Set(a.keys.Lock, rival, time.Minute)
			if reply := a.commit("ql1:me/1", 1000, 1, script.Rival); reply.Holder != rival {
				a.Errorf("holder: got %q, want %q", reply.Holder, rival)
			}
		}
		a.wantMark(1000, "")
	}},
	{"a commit goes on record", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.commit("ql1:me/1", 1000, sixteen, script.Done)
		a.wantMark(1000, digits(sixteen)+" run ql1:me/1")
		a.wantHash(a.keys.Register, "from", "500")
		a.wantTTL(a.keys.Register, 10*week)
		a.commit("ql1:me/1", 1000, sixteen, script.Done) // the same message once more
		a.wantMark(1000, digits(sixteen)+" run ql1:me/1")
	}},
	{"a mark is written over by a larger token only", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/2", time.Minute)
		a.mark(1000, digits(sixteen)+" run ql1:me/1")
		a.commit("ql1:me/2", 1000, sixteen-1, script.Marked)
		a.wantMark(1000, digits(sixteen)+" run ql1:me/1")
		a.commit("ql1:me/2", 1000, sixteen+1, script.Done)
		a.wantMark(1000, digits(sixteen+1)+" run ql1:me/2")
	}},
	{"young marks are kept", func(a *asker) { a.wantMarks(100, time.Hour, 100) }},
	{"old marks are dropped, but for eight", func(a *asker) { a.wantMarks(100, time.Millisecond, 8) }},
	{"no more than 512 marks are kept", func(a *asker) { a.wantMarks(530, time.Hour, 512) }},
	{"few marks are kept however old", func(a *asker) { a.wantMarks(12, time.Millisecond, 12) }},
	{"dropping keeps the rest of the hash", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		fields := map[string]string{"token": digits(sixteen), "by": "x", "low": digits(1 << 50)}
		for i := range 40 {
			fields["t"+digits(uint64(i))] = "1 run x"
		}
		a.Data.SetHash(a.keys.Register, fields, week)
		a.commit("ql1:me/1", a.now(), sixteen, script.Done)
		a.wantRegister(digits(sixteen))
		a.wantHash(a.keys.Register, "by", "x")
		a.wantHash(a.keys.Register, "low", digits(1<<50)) // never lowered
		a.wantMark(0, "")
	}},
	{"a lease is confirmed and its mark moves", func(a *asker) {
		now := a.now()
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.confirm("ql1:me/1", now-2000, script.Done)
		a.wantLeader(now-2000, "ql1:me/1")
		a.wantTTL(a.keys.Register, week)
		a.confirm("ql1:me/1", now-1000, script.Done)
		a.wantLeader(now-1000, "ql1:me/1")
		a.confirm("ql1:me/1", now-5000, script.Done) // a late message does not move it back
		a.wantLeader(now-1000, "ql1:me/1")
	}},
	{"a leader's clock is clamped by the node's", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		reply := a.confirm("ql1:me/1", a.now()+time.Hour.Milliseconds(), script.Done)
		a.wantLeader(reply.Time.Milliseconds(), "ql1:me/1")
	}},
	{"a new leader waits for the guard after the old one's mark", func(a *asker) {
		now := a.now()
		a.Data.SetHash(a.keys.Register,
			map[string]string{"mark": fmt.Sprint(now - 2000), "by": "ql1:me/1"}, week)
		a.Data.Set(a.keys.Lock, "ql1:me/2", time.Minute)
		// guard is 500 ms
		if reply := a.confirm("ql1:me/2", now-1600, script.Marked); reply.Left != 100*time.Millisecond {
			a.Errorf("missing: got %v, want 100 ms", reply.Left)
		}
		a.confirm("ql1:me/2", now-1500, script.Marked)
		a.wantLeader(now-2000, "ql1:me/1")
		a.confirm("ql1:me/2", now-1499, script.Done)
		a.wantLeader(now-1499, "ql1:me/2")
	}},
	{"a lease that is not ours is not confirmed", func(a *asker) {
		if reply := a.confirm("ql1:me/1", a.now(), script.Nobody); reply.Time == 0 {
			a.Error("got no TIME")
		}
		for _, rival := range rivals {
			a.Data.Set(a.keys.Lock, rival, time.Minute)
			reply := a.confirm("ql1:me/1", a.now(), script.Rival)
			if reply.Holder != rival {
				a.Errorf("holder: got %q, want %q", reply.Holder, rival)
			}
			a.wantMinute(reply.Left)
		}
		if ttl := a.Data.TTL(a.keys.Register); ttl != noKey {
			a.Errorf("TTL of the mark: got %v, want no key", ttl)
		}
	}},
	{"another type where the marks belong is an error", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.Data.Set(a.keys.Register, "text", time.Minute)
		w := a.wish("ql1:me/1")
		for _, c := range []*quorum.Command{Claim(w, a.now()), Claim(w, a.now()+1e6),
			Commit(a.keys, w.Token, 1000, 1, time.Hour, week), a.confirmation(w.Token, a.now())} {
			a.fails(c, "WRONGTYPE")
		}
	}},
}

// now is a moment just past on every node's clock, in ms: they run on this machine, but one that
// is busy may be a little late.
func (a *asker) now() int64 { return time.Now().UnixMilli() - 1000 }

func (a *asker) claim(w Acquire, tick int64, letter byte) (script.Reply, script.Record) {
	a.Helper()
	text := a.text(Claim(w, tick))
	reply, record, err := script.ParseClaim(text)
	if err != nil {
		a.Fatal(err)
	}
	if reply.Letter != letter {
		a.Fatalf("claim: got %q, want a reply that begins with %q", text, letter)
	}
	return reply, record
}

func (a *asker) commit(token string, tick int64, fencing uint64, letter byte) script.Reply {
	a.Helper()
	c := Commit(a.keys, token, tick, fencing, time.Hour, 10*week)
	return a.parsed(c, script.ParseCommit, letter)
}

func (a *asker) confirmation(token string, reading int64) *quorum.Command {
	return Confirm(a.keys, token, reading, 500*time.Millisecond, week)
}

func (a *asker) confirm(token string, reading int64, letter byte) script.Reply {
	a.Helper()
	return a.parsed(a.confirmation(token, reading), script.ParseConfirm, letter)
}

// mark writes a tick's mark.
func (a *asker) mark(tick int64, text string) {
	a.Data.SetHash(a.keys.Register, map[string]string{"t" + fmt.Sprint(tick): text}, week)
}

// wantMark wants this on record of a tick; "" wants nothing.
func (a *asker) wantMark(tick int64, text string) {
	a.Helper()
	got, ok := a.Data.HGet(a.keys.Register, "t"+fmt.Sprint(tick))
	if ok != (text != "") || got != text {
		a.Errorf("mark of %d: got %q (there: %v), want %q", tick, got, ok, text)
	}
}

func (a *asker) wantLeader(mark int64, by string) {
	a.Helper()
	a.wantHash(a.keys.Register, "mark", fmt.Sprint(mark))
	a.wantHash(a.keys.Register, "by", by)
}

// wantMarks wants so many of count marks to be left, the newest ones, after a commit: the marks are
// one second apart, and the newest is the commit's.
func (a *asker) wantMarks(count int, grace time.Duration, left int) {
	a.Helper()
	newest := a.now() - 3000 // Grace counts in whole seconds of the node's clock
	at := func(age int) int64 { return newest - int64(age)*1000 }
	fields := make(map[string]string)
	for age := 1; age < count; age++ {
		fields["t"+fmt.Sprint(at(age))] = "1 run x"
	}
	a.Data.SetHash(a.keys.Register, fields, week)
	a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
	c := Commit(a.keys, "ql1:me/1", newest, sixteen, grace, week)
	a.parsed(c, script.ParseCommit, script.Done)

	got := 0
	for age := range count {
		if _, ok := a.Data.HGet(a.keys.Register, "t"+fmt.Sprint(at(age))); ok {
			if got < age {
				a.Fatalf("mark %d from the newest is there, a newer one is not", age)
			}
			got++
		}
	}
	if got != left {
		a.Errorf("marks left: got %d of %d, want %d", got, count, left)
	}
	low, ok := a.Data.HGet(a.keys.Register, "low")
	want := fmt.Sprint(at(left))
	if left == count {
		want = ""
	}
	if ok != (want != "") || low != want {
		a.Errorf("low: got %q (there: %v), want %q", low, ok, want)
	}
}
