package nodetest

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

func TestManyOnMiniredis(t *testing.T) {
	t.Parallel()
	compareMany(t, startMiniredis(t)(t))
}

func TestManyOnRedis(t *testing.T) {
	t.Parallel()
	compareMany(t, startRedis(t)(t))
}

// compareMany sends random batches about many locks to a node, which gets them as messages for
// many, and call by call to a fake one. It wants the same answers and the same memory.
func compareMany(t *testing.T, s Subject) {
	t.Helper()
	const runs, steps, names = 6, 15, 150
	fake := fakenode.New("fake")
	seed := uint64(time.Now().UnixNano())
	for run := range uint64(runs) {
		prefix := rand.Text() + ":"
		dice := mrand.New(mrand.NewPCG(seed, run))
		one := &asker{T: t, Subject: s, keys: KeysOf(prefix, "")}
		other := &asker{T: t, Subject: Subject{Node: fake, Data: fake}, keys: one.keys}
		for step := range steps {
			if step%4 == 3 && s.ForgetScripts != nil {
				s.ForgetScripts()
			}
			commands, parsers := randomMany(dice, one, names)
			batch := one.exec(commands...)
			for i, c := range commands {
				got, want := one.callText(&batch.Calls[i], parsers[i]), other.answerText(c, parsers[i])
				if got != want {
					t.Fatalf("seed %d, run %d, step %d, call %d: %s %v: got %s, want %s",
						seed, run, step, i, c.Script.Name, c.Words(), got, want)
				}
			}
			spoil := one.named(fmt.Sprint(dice.IntN(names))).keys.Lock // not a text: WRONGTYPE
			for _, a := range []*asker{one, other} {
				a.Data.SetHash(spoil, map[string]string{"field": "text"}, time.Hour)
			}
		}
		for i := range names {
			got, want := one.named(fmt.Sprint(i)).memoryText(), other.named(fmt.Sprint(i)).memoryText()
			if got != want {
				t.Fatalf("seed %d, run %d, name %d: got %s, want %s", seed, run, i, got, want)
			}
		}
	}
}

// randomMany are commands about some of the names, in random order.
func randomMany(dice *mrand.Rand, a *asker, names int) (all []*quorum.Command, parsers []parser) {
	most := []time.Duration{2 * time.Minute, time.Hour}[dice.IntN(2)]
	identity := []string{"", identityA}[dice.IntN(2)]
	for _, name := range dice.Perm(names)[:1+dice.IntN(names)] {
		keys := a.named(fmt.Sprint(name)).keys
		token := fmt.Sprintf("ql1:h/%d", dice.IntN(3))
		ttl := most / time.Duration(1+dice.IntN(2)) // one call is for those with the same
		switch dice.IntN(4) {
		case 0, 1:
			w := randomAcquire(dice, keys, token, sixteen+dice.Uint64N(5), ttl)
			w.Identity, w.MaxTTL, w.Largest = identity, most, most
			all, parsers = append(all, w.Command()), append(parsers, script.ParseAcquire)
		case 2:
			all = append(all, Extend(keys, token, ttl, []time.Duration{0, week}[dice.IntN(2)]))
			parsers = append(parsers, script.ParseExtend)
		default:
			all = append(all, Release(keys, token, []time.Duration{0, time.Minute}[dice.IntN(8)/7]))
			parsers = append(parsers, script.ParseRelease)
		}
	}
	return all, parsers
}

// TestManyWithTheRightToSome: a user who may touch some keys only gets those, whatever else is in
// the batch.
func TestManyWithTheRightToSome(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	server := redisproc.ForTest(t, 1, redisproc.WithACL("user some on >secret ~mine* ~ql:h:mine* &* +@all"))[0]
	subject, _ := overRedis(t, "redis://some:secret@"+server.Addr())
	a := &asker{T: t, Subject: subject, keys: KeysOf("", "x")}
	var commands []*quorum.Command
	for _, name := range []string{"mine/1", "yours", "mine/2"} {
		keys := KeysOf("", name)
		keys.Node = "mine:node"
		w := a.wish("ql1:me/1")
		w.Keys = keys
		commands = append(commands, w.Command())
	}
	batch := a.exec(commands...)
	for i, want := range []string{"+", "NOPERM", "+"} {
		c := &batch.Calls[i]
		if got := c.Reply + fmt.Sprint(c.Err); !strings.HasPrefix(got, want) &&
			!strings.Contains(got, want) {
			t.Errorf("call %d: got %q, %v, want %s", i, c.Reply, c.Err, want)
		}
	}
}
