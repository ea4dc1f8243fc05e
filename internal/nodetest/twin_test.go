package nodetest

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// compareWithFake sends the same random messages to a node and to a fake one, and wants the same
// answers and the same memory after each. Tokens are chosen so that no clock decides about them.
func compareWithFake(t *testing.T, s Subject) {
	t.Helper()
	const runs, steps = 12, 40
	fake := fakenode.New("fake")
	seed := uint64(time.Now().UnixNano())
	for run := range uint64(runs) {
		prefix := rand.Text() + ":"
		one := &asker{T: t, Subject: s, keys: KeysOf(prefix, "job")}
		other := &asker{T: t, Subject: Subject{Node: fake, Data: fake}, keys: one.keys}
		dice := mrand.New(mrand.NewPCG(seed, run))
		var history []string
		for range steps {
			what, act := randomAct(dice, one.keys)
			history = append(history, what)
			got, want := act(one)+one.memoryText(), act(other)+other.memoryText()
			if got != want {
				t.Fatalf("seed %d, run %d, after\n%s\ngot  %s\nfake %s",
					seed, run, strings.Join(history, "\n"), got, want)
			}
		}
	}
}

// randomAct is something to do to a node; it tells what the node answered.
func randomAct(dice *mrand.Rand, keys Keys) (what string, act func(*asker) string) {
	token := fmt.Sprintf("ql1:h/%d", dice.IntN(3))
	number := sixteen + dice.Uint64N(5)
	ttl := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[dice.IntN(3)]
	send := func(c *quorum.Command, parse parser) (string, func(*asker) string) {
		what := fmt.Sprint(c.Script.Name, " ", c.Words())
		return what, func(a *asker) string { return a.answerText(c, parse) }
	}
	write := func(what string, write func(Data)) (string, func(*asker) string) {
		return what, func(a *asker) string { write(a.Data); return "" }
	}
	tick := int64(1000 * (1 + dice.IntN(3)))
	switch dice.IntN(20) {
	case 0, 1, 2, 3:
		return send(randomAcquire(dice, keys, token, number, ttl).Command(), script.ParseAcquire)
	case 4:
		return send(Extend(keys, token, ttl, []time.Duration{0, week}[dice.IntN(2)]), script.ParseExtend)
	case 5:
		return send(Raise(keys, token, number, week), script.ParseRelease)
	case 6, 7, 8:
		return send(Release(keys, token, 0), script.ParseRelease)
	case 12:
		return send(Release(keys, token, ttl), script.ParseRelease)
	case 13:
		to := fmt.Sprintf("ql1:h/%d", dice.IntN(3))
		return send(Swap(keys, token, to, ttl, week), script.ParseExtend)
	case 14:
		return send(Inspect(keys), script.ParseInspect)
	case 15, 16:
		return send(Commit(keys, token, tick, number, time.Hour, week), script.ParseCommit)
	case 17:
		return send(Confirm(keys, token, tick, time.Second, week), script.ParseConfirm)
	case 18, 19:
		w := randomAcquire(dice, keys, token, number, ttl)
		return send(Claim(w, tick), parseClaim)
	case 9:
		return write("lock := string "+token, func(d Data) {
			d.Set(keys.Lock, token, []time.Duration{0, ttl}[number%2])
		})
	case 10:
		return write("a hash, or a string, where the other belongs", func(d Data) {
			switch number % 3 {
			case 0:
				d.SetHash(keys.Lock, map[string]string{"token": "1"}, ttl)
			case 1:
				d.Set(keys.Register, "text", ttl)
			default:
				d.SetHash(keys.Register, map[string]string{"token": digits(number)}, ttl)
			}
		})
	default:
		since, from := digits(sixteen-uint64(number%2)*1e12), digits(number%3*1e12)
		return write("node := since "+since+" from "+from, func(d Data) {
			d.SetHash(keys.Node, map[string]string{"id": identityA, "since": since, "from": from,
				"max": digits(number % 7), "floor": digits(number)}, 0)
		})
	}
}

func randomAcquire(
	dice *mrand.Rand, keys Keys, token string, number uint64, ttl time.Duration,
) Acquire {
	return Acquire{Keys: keys, Token: token, TTL: ttl, Proposed: number,
		Allowance: 10000 * week, HalfLife: 10000 * week, Life: week,
		Identity: []string{"", identityA, identityB}[dice.IntN(3)], MaxTTL: ttl, Largest: ttl}
}

// parseClaim leaves out what is on record: it is seen in the memory.
func parseClaim(text string) (script.Reply, error) {
	reply, _, err := script.ParseClaim(text)
	return reply, err
}

// answerText is an answer without what clocks and servers' manners decide.
func (a *asker) answerText(c *quorum.Command, parse parser) string {
	a.Helper()
	return a.callText(&a.exec(c).Calls[0], parse)
}

// callText is the same of a call that was made.
func (a *asker) callText(call *quorum.Call, parse parser) string {
	a.Helper()
	if call.Err != nil {
		for _, word := range []string{"WRONGTYPE", "attempt to", "invalid expire"} {
			if strings.Contains(call.Err.Error(), word) {
				return word
			}
		}
		return call.Err.Error()
	}
	reply, err := parse(call.Reply)
	if err != nil {
		a.Fatal(err)
	}
	return fmt.Sprintf("%c since %v from %v max %v register %d left %v holder %q", reply.Letter,
		reply.Since, reply.From, reply.MaxTTL, reply.Register, about(reply.Left), reply.Holder)
}

// memoryText is all that lies under the name.
func (a *asker) memoryText() string {
	var b strings.Builder
	var texts []string
	for _, key := range []string{a.keys.Lock, a.keys.Register, a.keys.Node} {
		fmt.Fprintf(&b, "; %v", about(a.Data.TTL(key)))
	}
	for key, fields := range map[string][]string{
		a.keys.Node:     {"id", "since", "from", "max", "floor"},
		a.keys.Register: {"token", "from", "mark", "by", "t1000", "t2000", "t3000"},
	} {
		for _, field := range fields {
			text, _ := a.Data.HGet(key, field)
			texts = append(texts, fmt.Sprintf(" %s=%s", field, text))
		}
	}
	slices.Sort(texts)
	return b.String() + strings.Join(texts, "")
}

// about is a span without what the asking took of it; what is no span stays.
func about(d time.Duration) time.Duration {
	if d < 0 {
		return d
	}
	return (d + time.Minute/2).Truncate(time.Minute)
}
