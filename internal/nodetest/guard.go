package nodetest

import (
	"maps"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// identityA and identityB are identities of memories; the scripts compare them and no more.
const (
	identityA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	identityB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// admit writes the node's hash as an admission would: since and from count from now.
func (a *asker) admit(identity string, since, from, most time.Duration) (fields map[string]string) {
	now := time.Duration(time.Now().UnixMicro()) * time.Microsecond
	fields = map[string]string{
		"id":    identity,
		"since": digits(micros(now + since)),
		"from":  digits(micros(now + from)),
		"max":   digits(uint64(most.Milliseconds())),
		"floor": digits(micros(now + from)),
	}
	a.Data.SetHash(a.keys.Node, fields, 0)
	return fields
}

// guarded is an acquire that expects a memory.
func (a *asker) guarded(token, identity string, most time.Duration) Acquire {
	w := a.wish(token)
	w.Identity, w.MaxTTL, w.Largest = identity, most, most
	return w
}

// wantNode wants the node's hash to be so, and without an end.
func (a *asker) wantNode(fields map[string]string) {
	a.Helper()
	for field, text := range fields {
		a.wantHash(a.keys.Node, field, text)
	}
	if ttl := a.Data.TTL(a.keys.Node); ttl != noEnd {
		a.Errorf("TTL of the node's key: got %v, want no end", ttl)
	}
}

// wantSaid wants the reply to carry what the node's hash says.
func (a *asker) wantSaid(reply script.Reply, fields map[string]string, most time.Duration) {
	a.Helper()
	since, from := digits(micros(reply.Since)), digits(micros(reply.From))
	if since != fields["since"] || from != fields["from"] || reply.MaxTTL != most {
		a.Errorf("got since %s, from %s, max %v; want %s, %s, %v",
			since, from, reply.MaxTTL, fields["since"], fields["from"], most)
	}
}

// refusesMemory wants an acquire to be refused because of the memory, and nothing written.
func (a *asker) refusesMemory(identity string) {
	a.Helper()
	reply := a.acquire(a.guarded("ql1:me/1", identity, time.Hour), script.Unknown)
	if reply.Since != 0 || reply.From != 0 || reply.MaxTTL != 0 {
		a.Errorf("got since %v, from %v, max %v; want zeros", reply.Since, reply.From, reply.MaxTTL)
	}
	if reply.Time == 0 {
		a.Error("got no TIME")
	}
	a.wantHolder("")
	a.wantRegister("")
}

var guardClaims = []claim{
	{"a memory that nobody admitted is another one", func(a *asker) {
		a.refusesMemory(identityA)
		if ttl := a.Data.TTL(a.keys.Node); ttl != noKey {
			a.Errorf("TTL of the node's key: got %v, want no key", ttl)
		}
	}},
	{"another memory is another one", func(a *asker) {
		fields := a.admit(identityB, -time.Hour, -time.Minute, time.Second)
		a.refusesMemory(identityA)
		a.wantNode(fields)
	}},
	{"a memory known in part is another one", func(a *asker) {
		for _, missing := range []string{"id", "since", "from", "max", "floor"} {
			a := a.named("without " + missing)
			a.keys.Node += missing
			fields := a.admit(identityA, -time.Hour, -time.Minute, time.Second)
			delete(fields, missing)
			a.Data.SetHash(a.keys.Node, fields, 0)
			a.refusesMemory(identityA)
			a.wantNode(fields)
		}
	}},
	{"a memory that is old enough votes", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, -time.Minute, 10*time.Second)
		w := a.guarded("ql1:me/1", identityA, 10*time.Second)
		a.wantSaid(a.acquire(w, script.Done), fields, 10*time.Second)
		a.wantHolder(w.Token)
		a.wantSaid(a.acquire(w, script.Ours), fields, 10*time.Second)
		rival := a.guarded("ql1:rival/1", identityA, 10*time.Second)
		reply := a.acquire(rival, script.Rival)
		a.wantSaid(reply, fields, 10*time.Second)
		if reply.Holder != w.Token {
			a.Errorf("holder: got %q, want %q", reply.Holder, w.Token)
		}
		a.wantNode(fields)
	}},
	{"a new memory waits", func(a *asker) {
		fields := a.admit(identityA, -time.Second, time.Minute, time.Minute)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, time.Minute), script.Waits)
		a.wantSaid(reply, fields, time.Minute)
		a.wantHolder("")
		a.wantRegister("")
		a.wantNode(fields)
	}},
	{"an old memory waits until it is said to vote", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, time.Minute, time.Second)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, time.Second), script.Waits)
		a.wantSaid(reply, fields, time.Second)
		a.wantHolder("")
	}},
	{"a memory from the future waits", func(a *asker) {
		fields := a.admit(identityA, time.Minute, -time.Minute, time.Minute)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, time.Minute), script.Waits)
		a.wantSaid(reply, fields, time.Minute)
		a.wantHolder("")
	}},
	{"a memory younger than the node's largest MaxTTL waits", func(a *asker) {
		fields := a.admit(identityA, -time.Minute, -time.Minute, time.Hour)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, time.Second), script.Waits)
		a.wantSaid(reply, fields, time.Hour)
		a.wantHolder("")
	}},
	{"a memory younger than the client's own MaxTTL waits", func(a *asker) {
		fields := a.admit(identityA, -time.Minute, -time.Minute, time.Second)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, time.Hour), script.Waits)
		a.wantSaid(reply, longer(fields, "3600000", time.Hour-time.Second), time.Hour)
		a.wantHolder("")
	}},
	{"a memory younger than the largest MaxTTL on any node waits", func(a *asker) {
		fields := a.admit(identityA, -time.Minute, -time.Minute, time.Second)
		w := a.guarded("ql1:me/1", identityA, time.Second)
		w.Largest = time.Hour
		a.wantSaid(a.acquire(w, script.Waits), fields, time.Second)
		a.wantHolder("")
		a.wantNode(fields)
		w.Largest = 59 * time.Second
		a.wantSaid(a.acquire(w, script.Done), fields, time.Second)
	}},
	{"a memory that an operator let in votes at once", func(a *asker) {
		fields := a.admit(identityA, time.Second, 0, time.Hour)
		fields["from"] = "0"
		a.Data.SetHash(a.keys.Node, fields, 0)
		w := a.guarded("ql1:me/1", identityA, time.Hour)
		a.wantSaid(a.acquire(w, script.Done), fields, time.Hour)
		a.wantNode(fields)
	}},
	{"a waiting memory refuses its holder's plant as well", func(a *asker) {
		a.admit(identityA, -time.Second, time.Minute, time.Minute)
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Second)
		a.acquire(a.guarded("ql1:me/1", identityA, time.Minute), script.Waits)
		a.wantTTL(a.keys.Lock, time.Second)
	}},
	{"a waiting memory extends, raises and frees", func(a *asker) {
		a.admit(identityA, -time.Second, time.Minute, time.Minute)
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.extend("ql1:me/1", time.Minute, week, script.Done)
		a.raise("ql1:me/1", sixteen, script.Done)
		a.release("ql1:me/1", script.Done)
	}},
	{"a larger MaxTTL leaves room for what replicas lag behind", func(a *asker) {
		// Admitted 59 s ago with 50 s of lag: from is since + 10 s + 50 s.
		a.admit(identityA, -59*time.Second, time.Second, 10*time.Second)
		w := a.guarded("ql1:me/1", identityA, 10*time.Second)
		w.Largest = 20 * time.Second
		a.acquire(w, script.Waits)
		a.Data.SetHash(a.keys.Node, a.admit(identityA, -61*time.Second, -time.Second, 10*time.Second), 0)
		a.acquire(w, script.Waits)
		a.Data.SetHash(a.keys.Node, a.admit(identityA, -71*time.Second, -11*time.Second, 10*time.Second), 0)
		a.acquire(w, script.Done)
	}},
	{"a larger MaxTTL is written", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, -time.Minute, 9*time.Second)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, 10*time.Second), script.Done)
		fields = longer(fields, "10000", time.Second)
		a.wantSaid(reply, fields, 10*time.Second)
		a.wantNode(fields)
	}},
	{"a larger MaxTTL is written by one who has to wait", func(a *asker) {
		fields := a.admit(identityA, -time.Second, time.Minute, 9*time.Second)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, time.Hour), script.Waits)
		fields = longer(fields, "3600000", time.Hour-9*time.Second)
		a.wantSaid(reply, fields, time.Hour)
		a.wantNode(fields)
	}},
	{"a smaller MaxTTL is not", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, -time.Minute, 11*time.Second)
		reply := a.acquire(a.guarded("ql1:me/1", identityA, 10*time.Second), script.Done)
		a.wantSaid(reply, fields, 11*time.Second)
		a.wantNode(fields)
	}},
	{"what the memory forgot is the register's floor", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, -time.Second, 10*time.Second)
		fields["floor"] = digits(sixteen) // neither since nor from
		a.Data.SetHash(a.keys.Node, fields, 0)
		w := a.guarded("ql1:me/1", identityA, 10*time.Second)
		w.Proposed, w.HalfLife = sixteen/2, 10000*week
		if reply := a.acquire(w, script.Done); reply.Register != sixteen {
			a.Errorf("register: got %d, want the floor, %d", reply.Register, uint64(sixteen))
		}
		a.wantRegister(digits(sixteen))
	}},
	{"a floor of long ago is none", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, -time.Second, 10*time.Second)
		fields["floor"] = "1000000000000007"
		a.Data.SetHash(a.keys.Node, fields, 0)
		w := a.guarded("ql1:me/1", identityA, 10*time.Second)
		w.Proposed, w.HalfLife = 1, time.Hour
		reply := a.acquire(w, script.Done)
		if want := micros(reply.Time - time.Hour); reply.Register != want {
			a.Errorf("register: got %d, want %d, an hour ago", reply.Register, want)
		}
	}},
	{"the floor of a memory is nothing to a register above it", func(a *asker) {
		fields := a.admit(identityA, -time.Hour, -time.Second, 10*time.Second)
		fields["floor"] = digits(sixteen)
		a.Data.SetHash(a.keys.Node, fields, 0)
		a.Data.SetHash(a.keys.Register, map[string]string{"token": digits(sixteen + 5)}, week)
		w := a.guarded("ql1:me/1", identityA, 10*time.Second)
		w.Proposed, w.HalfLife = sixteen/2, 10000*week
		a.acquire(w, script.Done)
		a.wantRegister(digits(sixteen + 6))
	}},
	{"a string under the node's name is an error", func(a *asker) {
		a.Data.Set(a.keys.Node, "text", 0)
		a.fails(a.guarded("ql1:me/1", identityA, time.Second).Command(), "WRONGTYPE")
		a.wantHolder("")
	}},
	{"a batch says whose memory its guarded calls expect", func(a *asker) {
		a.admit(identityA, -time.Hour, -time.Minute, time.Second)
		w := a.guarded("ql1:me/1", "", time.Second)
		batch := &quorum.Batch{Identity: identityA, Calls: []quorum.Call{
			{Command: w.Command(), Guarded: true}, {Command: w.Command()}}}
		a.execBatch(batch)
		a.wantLetters(batch, "+=")
		for i, zero := range []bool{false, true} { // since: zero with the guard off
			reply, err := script.ParseAcquire(batch.Calls[i].Reply)
			if err != nil || (reply.Since == 0) != zero {
				a.Errorf("call %d: got %q", i, batch.Calls[i].Reply)
			}
		}
		batch.Identity = identityB
		a.execBatch(batch)
		a.wantLetters(batch, "!=")
	}},
}

// longer are the fields of a memory that has heard of a larger MaxTTL: it waits longer by as much,
// and tokens may have been ahead by as much.
func longer(fields map[string]string, most string, by time.Duration) map[string]string {
	from, _ := strconv.ParseInt(fields["from"], 10, 64)
	fields = maps.Clone(fields)
	fields["max"], fields["from"] = most, strconv.FormatInt(from+by.Microseconds(), 10)
	fields["floor"] = fields["from"]
	return fields
}
