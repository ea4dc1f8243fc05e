package nodetest

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// A register after a grant is max(register + 1, min(p, TIME + d), floor), with floor the larger
// of what the node's hash says and TIME less half the register's life; design, section 7, and
// findings F1, F2 and F4 of the protocol's review. The node's TIME is known from its reply.
type registerCase struct {
	name     string
	register uint64 // 0: none
	proposed uint64
	allow    time.Duration
	halfLife time.Duration
	want     func(now uint64) uint64
}

// Tokens are microseconds since the epoch, of sixteen digits since 2001. Lua writes these in text
// as 1.7644032001235e+15, so every case has digits that would be lost.
const sixteen = 1764403200123457

var registerCases = []registerCase{
	{"a proposal is taken as it is", 0, sixteen, 100 * week, 10000 * week, exactly(sixteen)},
	{"a proposal above the register is taken", sixteen - 1, sixteen, 100 * week, 10000 * week,
		exactly(sixteen)},
	{"a proposal equal to the register is not enough", sixteen, sixteen, 100 * week, 10000 * week,
		exactly(sixteen + 1)},
	{"a proposal below the register is not enough", sixteen + 2, sixteen, 100 * week, 10000 * week,
		exactly(sixteen + 3)},
	{"the largest exact number is kept exactly", 1<<53 - 2, sixteen, 0, week,
		exactly(1<<53 - 1)},
	{"a proposal is clamped by the node's clock", 0, 1<<53 - 1, 3 * time.Second, week,
		func(now uint64) uint64 { return now + 3_000_000 }},
	{"a clamp of nothing is the node's clock", 0, 1<<53 - 1, 0, week,
		func(now uint64) uint64 { return now }},
	{"a clamped proposal still grows", 1<<53 - 100, 1<<53 - 1, 3 * time.Second, week,
		exactly(1<<53 - 99)},
	{"half a life ago is the floor", 0, 1, 3 * time.Second, time.Hour,
		func(now uint64) uint64 { return now - 3_600_000_000 }},
	{"the floor lies above an old register", 1_000_000_000_000_007, 1, 0, time.Hour,
		func(now uint64) uint64 { return now - 3_600_000_000 }},
	{"a register above the floor grows by one", 1<<53 - 200, 1, 0, time.Hour, exactly(1<<53 - 199)},
}

func exactly(n uint64) func(uint64) uint64 { return func(uint64) uint64 { return n } }

var registerClaims = append(caseClaims(), []claim{
	{"a register outlives its lock", func(a *asker) {
		w := a.wish("ql1:me/1")
		first := a.granted(w)
		a.release(w.Token, script.Done)
		a.wantRegister(digits(first))
		w = a.wish("ql1:me/2")
		w.Proposed = first - 5
		if second := a.granted(w); second != first+1 {
			a.Errorf("token: got %d after %d, want one more", second, first)
		}
	}},
	{"tokens grow from lock to lock", func(a *asker) {
		var last uint64
		for i := range 20 {
			w := a.wish("ql1:me/" + digits(uint64(i)))
			token := a.granted(w)
			if token <= last {
				a.Errorf("token: got %d after %d", token, last)
			}
			last = token
			a.release(w.Token, script.Done)
		}
	}},
	{"a register ends after its life", func(a *asker) {
		w := a.wish("ql1:me/1")
		w.Life = 30 * time.Millisecond
		a.acquire(w, script.Done)
		a.eventually("the register ends", func() bool { return a.Data.TTL(a.keys.Register) == noKey })
		a.wantHolder(w.Token)
	}},
	{"a register's life begins anew with the leading digits", func(a *asker) {
		const step = 10_000_000_000 // us: what a life is longer than it has to be
		for what, c := range map[string]struct {
			register uint64
			want     time.Duration
		}{
			"the same digits":    {sixteen - 1, 30 * time.Minute},
			"others":             {sixteen - step, week},
			"others, by one":     {sixteen/step*step - 1, week},
			"of another length":  {sixteen / 10, week},
			"no register at all": {0, week},
		} {
			w := a.wish("ql1:me/" + what)
			w.Proposed, w.Allowance, w.HalfLife = sixteen, 100*week, 10000*week
			fields := map[string]string{"mark": "m"}
			if c.register != 0 {
				fields["token"] = digits(c.register)
			}
			a.Data.SetHash(a.keys.Register, fields, 30*time.Minute)
			a.acquire(w, script.Done)
			a.wantRegister(digits(sixteen))
			a.wantTTL(a.keys.Register, c.want)
			a.release(w.Token, script.Done)
		}
	}},
	{"a raise lifts", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.acquire(w, script.Done)
		a.Data.SetHash(a.keys.Register, map[string]string{"token": digits(sixteen)}, time.Minute)
		a.raise(w.Token, sixteen+2, script.Done)
		a.wantRegister(digits(sixteen + 2))
		a.wantTTL(a.keys.Register, week)
	}},
	{"a raise never lowers", func(a *asker) {
		w := a.wish("ql1:me/1")
		a.acquire(w, script.Done)
		a.Data.SetHash(a.keys.Register, map[string]string{"token": digits(sixteen)}, time.Minute)
		a.raise(w.Token, sixteen-1, script.Done)
		a.wantRegister(digits(sixteen))
		a.wantTTL(a.keys.Register, week)
	}},
	{"a raise makes a register", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.raise("ql1:me/1", sixteen, script.Done)
		a.wantRegister(digits(sixteen))
		a.wantTTL(a.keys.Register, week)
	}},
	{"a raise keeps other fields of the hash", func(a *asker) {
		a.Data.Set(a.keys.Lock, "ql1:me/1", time.Minute)
		a.Data.SetHash(a.keys.Register, map[string]string{"token": "5", "mark": "m"}, time.Minute)
		a.raise("ql1:me/1", sixteen, script.Done)
		a.wantRegister(digits(sixteen))
		a.wantHash(a.keys.Register, "mark", "m")
	}},
}...)

func caseClaims() []claim {
	var claims []claim
	for _, c := range registerCases {
		claims = append(claims, claim{c.name, c.check})
	}
	return claims
}

func (c registerCase) check(a *asker) {
	if c.register != 0 {
		a.Data.SetHash(a.keys.Register, map[string]string{"token": digits(c.register)}, week)
	}
	w := a.wish("ql1:me/1")
	w.Proposed, w.Allowance, w.HalfLife = c.proposed, c.allow, c.halfLife
	reply := a.acquire(w, script.Done)
	want := c.want(micros(reply.Time))
	a.wantRegister(digits(want))
	a.wantTTL(a.keys.Register, w.Life)
	said := want
	if want == c.proposed {
		said = 0
	}
	if reply.Register != said {
		a.Errorf("register in the reply: got %d, want %d", reply.Register, said)
	}
	// A repetition of the message is told the same token.
	if again := a.acquire(w, script.Ours); again.Register != said {
		a.Errorf("register in the second reply: got %d, want %d", again.Register, said)
	}
}

// granted is the fencing token of a new grant.
func (a *asker) granted(w Acquire) uint64 {
	a.Helper()
	reply := a.acquire(w, script.Done)
	if reply.Register == 0 {
		return w.Proposed
	}
	return reply.Register
}
