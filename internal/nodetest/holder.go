package nodetest

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// holderClaims are about the scripts that need our key, extend, raise, swap and release, and about
// inspect, which needs none.
var holderClaims = []claim{
	{"extend prolongs the key and the register", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.Life = time.Hour
		a.acquire(w, script.Done)
		reply := a.extend(w.Token, time.Minute, week, script.Done)
		if reply.Time == 0 {
			a.Error("got no TIME")
		}
		a.wantTTL(a.keys.Lock, time.Minute)
		a.wantTTL(a.keys.Register, week)
	}},
	{"extend never shortens the key", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.TTL = time.Minute
		a.acquire(w, script.Done)
		a.extend(w.Token, time.Second, week, script.Done)
		a.wantTTL(a.keys.Lock, time.Minute)
	}},
	{"extend leaves the register where it is told to", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.Life = time.Hour
		a.acquire(w, script.Done)
		a.extend(w.Token, time.Minute, 0, script.Done)
		a.wantTTL(a.keys.Register, time.Hour)
		a.wantRegister(digits(w.Proposed))
	}},
	{"extend makes no register", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Second)
		a.extend("ql1:me/1", time.Minute, week, script.Done)
		a.wantTTL(a.keys.Lock, time.Minute)
		a.wantRegister("")
	}},
	{"extend gives an end to a key of ours without one", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", 0)
		a.extend("ql1:me/1", time.Minute, week, script.Done)
		a.wantTTL(a.keys.Lock, time.Minute)
	}},
	{"without a key nothing is done", func(a *asker) {
		if reply := a.extend("ql1:me/1", time.Minute, week, script.Nobody); reply.Time == 0 {
			a.Error("extend: got no TIME")
		}
		if reply := a.swap("ql1:me/1", "ql1:me/2", time.Minute, script.Nobody); reply.Time == 0 {
			a.Error("swap: got no TIME")
		}
		a.raise("ql1:me/1", sixteen, script.Nobody)
		a.release("ql1:me/1", script.Nobody)
		a.wantHolder("")
		a.wantRegister("")
	}},
	{"with a rival's key nothing is done", func(a *asker) {
		for i, rival := range rivals {
			a.named("job" + digits(uint64(i))).leavesAlone(rival)
		}
	}},
	{"release frees once", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.acquire(w, script.Done)
		a.release(w.Token, script.Done)
		a.wantHolder("")
		a.wantRegister(digits(w.Proposed))
		a.release(w.Token, script.Nobody)
	}},
	{"release leaves the key for as long as it has to stay", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.TTL = time.Hour
		a.acquire(w, script.Done)
		a.keeps(w.Token, time.Minute)
		a.wantHolder(w.Token)
		a.wantTTL(a.keys.Lock, time.Minute)
		a.keeps(w.Token, time.Hour) // never prolonged
		a.wantTTL(a.keys.Lock, time.Minute)
		a.release(w.Token, script.Done)
		a.wantHolder("")
	}},
	{"release gives an end to a key that has to stay and has none", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", 0)
		a.keeps("ql1:me/1", time.Minute)
		a.wantTTL(a.keys.Lock, time.Minute)
	}},
	{"swap hands the lock over once", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.Life = time.Hour
		a.acquire(w, script.Done)
		if reply := a.swap(w.Token, "ql1:me/2", time.Minute, script.Done); reply.Time == 0 {
			a.Error("got no TIME")
		}
		a.wantHolder("ql1:me/2")
		a.wantTTL(a.keys.Lock, time.Minute)
		a.wantTTL(a.keys.Register, week)
		a.wantRegister(digits(w.Proposed))
		if reply := a.swap(w.Token, "ql1:me/3", time.Minute, script.Rival); reply.Holder != "ql1:me/2" {
			a.Errorf("holder: got %q, want ql1:me/2", reply.Holder)
		}
		a.swap(w.Token, "ql1:me/2", time.Minute, script.Done) // the same message once more
		a.wantHolder("ql1:me/2")
	}},
	{"swap never shortens the key", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Hour)
		a.swap("ql1:me/1", "ql1:me/2", time.Minute, script.Done)
		a.wantHolder("ql1:me/2")
		a.wantTTL(a.keys.Lock, time.Hour)
	}},
	{"swap gives an end to a key without one", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", 0)
		a.swap("ql1:me/1", "ql1:me/2", time.Minute, script.Done)
		a.wantTTL(a.keys.Lock, time.Minute)
		a.wantRegister("")
	}},
	{"inspect tells what is there and changes nothing", func(a *asker) {
		reply := a.inspect(script.Nobody)
		if reply.Register != 0 || reply.Time == 0 {
			a.Errorf("got %+v, want register 0 and TIME", reply)
		}
		a.Data.SetHash(a.keys.Register, map[string]string{"token": digits(sixteen)}, time.Hour)
		if reply := a.inspect(script.Nobody); reply.Register != sixteen {
			a.Errorf("register: got %d, want %d", reply.Register, uint64(sixteen))
		}
		for _, rival := range rivals {
			a.Data.Set(a.keys.Lock, rival, time.Minute)
			reply := a.inspect(script.Rival)
			if reply.Register != sixteen || reply.Holder != rival {
				a.Errorf("got %+v, want register %d, holder %q", reply, uint64(sixteen), rival)
			}
			a.wantMinute(reply.Left)
		}
		a.Data.Set(a.keys.Lock, "stranger", 0)
		if reply := a.inspect(script.Rival); reply.Left >= 0 {
			a.Errorf("left: got %v, want a negative span", reply.Left)
		}
		a.wantTTL(a.keys.Register, time.Hour)
	}},
	{"the key of another attempt of ours is a rival's", func(a *asker) {
		a.acquire(a.wish("ql1:me/2"), script.Done)
		if reply := a.release("ql1:me/1", script.Rival); reply.Holder != "ql1:me/2" {
			a.Errorf("holder: got %q, want ql1:me/2", reply.Holder)
		}
		a.wantHolder("ql1:me/2")
	}},
	{"a swap writes a larger MaxTTL, where there is one", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.swap("ql1:me/1", "ql1:me/2", time.Hour, script.Done)
		if ttl := a.Data.TTL(a.keys.Node); ttl != noKey {
			a.Errorf("TTL of the node's key: got %v, want no key", ttl)
		}
		fields := a.admit(identityA, -time.Hour, -time.Minute, time.Minute)
		a.swap("ql1:me/2", "ql1:me/3", time.Second, script.Done)
		a.wantNode(fields)
		a.swap("ql1:me/1", "ql1:me/4", time.Hour, script.Rival)
		a.wantNode(fields)
		a.swap("ql1:me/3", "ql1:me/4", time.Hour, script.Done)
		a.wantNode(longer(fields, "3600000", time.Hour-time.Minute))
	}},
	{"a swap leaves a node that an operator let in voting, with a higher floor", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		fields := a.admit(identityA, -time.Minute, -time.Minute, time.Second)
		fields["from"] = "0"
		a.Data.SetHash(a.keys.Node, fields, 0)
		a.swap("ql1:me/1", "ql1:me/2", time.Hour, script.Done)
		fields["max"] = "3600000"
		since, _ := strconv.ParseUint(fields["since"], 10, 64)
		fields["floor"] = digits(since + micros(time.Hour))
		a.wantNode(fields)
	}},
	{"a hash under the lock's name is an error and stays", func(a *asker) {
		a.Data.SetHash(a.keys.Lock, map[string]string{"field": "text"}, time.Minute)
		for _, c := range a.holderCommands("ql1:me/1") {
			a.fails(c, "WRONGTYPE")
		}
		a.wantHash(a.keys.Lock, "field", "text")
		a.wantTTL(a.keys.Lock, time.Minute)
		a.wantRegister("")
	}},
	{"a string under the register's name fails a raise only", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.Data.Set(a.keys.Register, "text", time.Minute)
		a.fails(Raise(a.keys, "ql1:me/1", sixteen, week), "WRONGTYPE")
		a.extend("ql1:me/1", time.Minute, 0, script.Done)
		if text, _ := a.Data.Get(a.keys.Register); text != "text" {
			a.Errorf("register's key: got %q, want it as before", text)
		}
		a.release("ql1:me/1", script.Done)
	}},
}

func (a *asker) holderCommands(token string) []*quorum.Command {
	return []*quorum.Command{
		Extend(a.keys, token, time.Hour, week),
		Raise(a.keys, token, sixteen, week),
		Swap(a.keys, token, "ql1:me/9", time.Hour, week),
		Inspect(a.keys),
		Release(a.keys, token, 0),
		Release(a.keys, token, time.Second),
	}
}

// keeps releases the lock, but for a while.
func (a *asker) keeps(token string, keep time.Duration) {
	a.Helper()
	a.parsed(Release(a.keys, token, keep), script.ParseRelease, script.Done)
}

// wantMinute wants a span to be a minute or a little less.
func (a *asker) wantMinute(left time.Duration) {
	a.Helper()
	if left > time.Minute || left < time.Minute-patience {
		a.Errorf("left: got %v, want a minute or a little less", left)
	}
}

// leavesAlone wants the scripts that need our key to name the rival and to do nothing.
func (a *asker) leavesAlone(rival string) {
	a.Helper()
	a.Data.Set(a.keys.Lock, rival, time.Minute)
	for _, reply := range []script.Reply{
		a.extend("ql1:me/1", time.Hour, week, script.Rival),
		a.raise("ql1:me/1", sixteen, script.Rival),
		a.swap("ql1:me/1", "ql1:me/2", time.Hour, script.Rival),
		a.release("ql1:me/1", script.Rival),
	} {
		if reply.Holder != rival {
			a.Errorf("holder: got %q, want %q", reply.Holder, rival)
		}
		a.wantMinute(reply.Left)
	}
	if text, ok := a.Data.Get(a.keys.Lock); !ok || text != rival {
		a.Errorf("lock: got %q, want it to stay %q", text, rival)
	}
	a.wantTTL(a.keys.Lock, time.Minute)
	a.wantRegister("")
}
