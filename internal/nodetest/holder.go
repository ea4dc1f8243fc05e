package nodetest

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// holderClaims are about the scripts that need our key: extend, raise, release.
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
	{"the key of another attempt of ours is a rival's", func(a *asker) {
		a.acquire(a.wish("ql1:me/2"), script.Done)
		if reply := a.release("ql1:me/1", script.Rival); reply.Holder != "ql1:me/2" {
			a.Errorf("holder: got %q, want ql1:me/2", reply.Holder)
		}
		a.wantHolder("ql1:me/2")
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
		Release(a.keys, token),
	}
}

// leavesAlone wants extend, raise and release to name the rival and to do nothing.
func (a *asker) leavesAlone(rival string) {
	a.Helper()
	a.Data.Set(a.keys.Lock, rival, time.Minute)
	for _, reply := range []script.Reply{
		a.extend("ql1:me/1", time.Hour, week, script.Rival),
		a.raise("ql1:me/1", sixteen, script.Rival),
		a.release("ql1:me/1", script.Rival),
	} {
		if reply.Holder != rival {
			a.Errorf("holder: got %q, want %q", reply.Holder, rival)
		}
		if reply.Left > time.Minute || reply.Left < time.Minute-patience {
			a.Errorf("left: got %v, want a minute or a little less", reply.Left)
		}
	}
	if text, ok := a.Data.Get(a.keys.Lock); !ok || text != rival {
		a.Errorf("lock: got %q, want it to stay %q", text, rival)
	}
	a.wantTTL(a.keys.Lock, time.Minute)
	a.wantRegister("")
}
