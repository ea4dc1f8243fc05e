package nodetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// rivals are owner tokens in all shapes that other programs may write.
var rivals = []string{
	"ql1:host:1/abc", "with a space", " ", "a/b/c", "4711", "-5 a", "ünïcödé ✓", "line\r\nbreak",
	"a\x00b", "\xff\xfe\x80", "{braces}", "",
}

var acquireClaims = []claim{
	{"a free lock is granted until its TTL", func(a *asker) {
		w := a.wish("ql1:me/1")
		before := time.Now().Add(-patience)
		reply := a.acquire(w, script.Done)
		a.wantHolder(w.Token)
		a.wantTTL(a.keys.Lock, w.TTL)
		a.wantTTL(a.keys.Register, w.Life)
		a.wantRegister(digits(w.Proposed))
		if at := time.Unix(0, int64(reply.Time)); at.Before(before) || at.After(before.Add(2*patience)) {
			a.Errorf("TIME: got %v, want this machine's", at)
		}
		if reply.Since != 0 || reply.From != 0 || reply.MaxTTL != 0 {
			a.Errorf("guard off: got since %v, from %v, max %v; want zeros",
				reply.Since, reply.From, reply.MaxTTL)
		}
	}},
	{"the node's key is not touched with the guard off", func(a *asker) {
		a.acquire(a.wish("ql1:me/1"), script.Done)
		if ttl := a.Data.TTL(a.keys.Node); ttl != noKey {
			a.Errorf("TTL of the node's key: got %v, want no key", ttl)
		}
	}},
	{"the key that is ours is found", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.acquire(w, script.Done)
		if reply := a.acquire(w, script.Ours); reply.Register != 0 {
			a.Errorf("register: got %d, want 0 for the proposed one", reply.Register)
		}
		again := w
		again.Proposed++
		if reply := a.acquire(again, script.Ours); reply.Register != w.Proposed {
			a.Errorf("register: got %d, want the first one, %d", reply.Register, w.Proposed)
		}
		a.wantHolder(w.Token)
		a.wantRegister(digits(w.Proposed))
	}},
	{"a key of ours is prolonged", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.acquire(w, script.Done)
		w.TTL = time.Minute
		a.acquire(w, script.Ours)
		a.wantTTL(a.keys.Lock, time.Minute)
	}},
	{"a key of ours is never shortened", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.TTL = time.Minute
		a.acquire(w, script.Done)
		w.TTL = time.Second
		a.acquire(w, script.Ours)
		a.wantTTL(a.keys.Lock, time.Minute)
	}},
	{"a key of ours without an end gets one", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.Data.Set(a.keys.Lock, w.Token, 0)
		a.acquire(w, script.Ours)
		a.wantTTL(a.keys.Lock, w.TTL)
	}},
	{"a key of ours that lost its register gets one", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.Data.Set(a.keys.Lock, w.Token, time.Minute)
		if reply := a.acquire(w, script.Ours); reply.Register != 0 {
			a.Errorf("register: got %d, want 0 for the proposed one", reply.Register)
		}
		a.wantRegister(digits(w.Proposed))
		a.wantTTL(a.keys.Register, w.Life)
		a.wantTTL(a.keys.Lock, time.Minute)
	}},
	{"a rival is named with what it has left", refusesRivals},
	{"a rival without an end has less than nothing left", func(a *asker) {
		a.Data.Set(a.keys.Lock, "stranger", 0)
		if reply := a.acquire(a.wish("ql1:me/1"), script.Rival); reply.Left >= 0 {
			a.Errorf("left: got %v, want a negative span", reply.Left)
		}
		if ttl := a.Data.TTL(a.keys.Lock); ttl != noEnd {
			a.Errorf("TTL: got %v, want no end as before", ttl)
		}
	}},
	{"a lock ends", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.TTL = 30 * time.Millisecond
		a.acquire(w, script.Done)
		rival := a.wish("ql1:rival/1")
		a.eventually("the lock ends", func() bool {
			reply, err := script.ParseAcquire(a.text(rival.Command()))
			if err != nil {
				a.Fatal(err)
			}
			return reply.Letter == script.Done
		})
		a.wantHolder(rival.Token)
		a.release(w.Token, script.Rival)
	}},
	{"a hash under the lock's name is an error and stays", func(a *asker) {
		a.Data.SetHash(a.keys.Lock, map[string]string{"field": "text"}, 0)
		a.fails(a.wish("ql1:me/1").Command(), "WRONGTYPE")
		a.wantHash(a.keys.Lock, "field", "text")
		a.wantRegister("")
	}},
	{"a string under the register's name is an error and stays", func(a *asker) {
		a.Data.Set(a.keys.Register, "text", time.Minute)
		w := a.wish("ql1:me/1")
		a.fails(w.Command(), "WRONGTYPE")
		if text, _ := a.Data.Get(a.keys.Register); text != "text" {
			a.Errorf("register's key: got %q, want it as before", text)
		}
		// What a script did before it failed stays done, but it ends.
		a.wantHolder(w.Token)
		a.wantTTL(a.keys.Lock, w.TTL)
	}},
	{"a TTL that is no time is an error", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.TTL = 0
		a.fails(w.Command(), "invalid expire time")
		a.wantHolder("")
	}},
	{"one of many at once is granted", grantsOne},
}

func refusesRivals(a *asker) {
	for i, rival := range rivals {
		a := a.named("job" + digits(uint64(i)))
		a.Data.Set(a.keys.Lock, rival, time.Minute)
		reply := a.acquire(a.wish("ql1:me/1"), script.Rival)
		if reply.Holder != rival {
			a.Errorf("holder: got %q, want %q", reply.Holder, rival)
		}
		a.wantMinute(reply.Left)
		if text, ok := a.Data.Get(a.keys.Lock); !ok || text != rival {
			a.Errorf("lock: got %q, want it to stay %q", text, rival)
		}
		a.wantTTL(a.keys.Lock, time.Minute)
		a.wantRegister("")
	}
}

func grantsOne(a *asker) {
	const callers = 16
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			call := a.exec(a.wish("ql1:me/" + digits(uint64(i))).Command()).Calls[0]
			if call.Err == nil && call.Reply[0] == script.Done {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 1 {
		a.Errorf("granted: got %d of %d, want 1", n, callers)
	}
}

// wantHash wants a field of a hash to be as it was.
func (a *asker) wantHash(key, field, text string) {
	a.Helper()
	if got, ok := a.Data.HGet(key, field); !ok || got != text {
		a.Errorf("%s of the hash: got %q (there: %v), want %q", field, got, ok, text)
	}
}
