package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/redlock"
)

// The checker catches engines that are broken: a rule is taken out of the product, the tests are
// built with that, and what its clients believe on real nodes is no lock. The whole product, asked
// the same, is one.

// A brokenEngine is a rule taken out of the product, as internal/mutants does it, and what shows
// it.
type brokenEngine struct {
	file, old, new string
	nodes          int
	ttl, timeout   time.Duration // NodeTimeout
	play           func(w *witness, cfg redlock.Config)
}

var brokenEngines = map[string]brokenEngine{
	"majority off by one": {
		file: "quorum/majority.go", old: "return n/2 + 1", new: "return max(n/2, 1)",
		nodes: 5, ttl: 30 * time.Second, timeout: time.Second, play: playMajority,
	},
	"release without owner check": {
		file: "internal/script/release.lua", old: "if holder ~= owner then", new: "if holder == '' then",
		nodes: 5, ttl: 30 * time.Second, timeout: time.Second, play: playRelease,
	},
	"nodes without the key counted": {
		file: "quorum/hold.go", old: "case t.Ours >= quorum:\n\t\treturn HoldKept",
		new:   "case t.Ours+t.Nobody >= quorum:\n\t\treturn HoldKept",
		nodes: 5, ttl: 6 * time.Second, timeout: time.Second, play: playExtend,
	},
	"planted keys counted": {
		file: "internal/script/extend.lua", old: "if not holder then\n    return '0', ''",
		new:   "if not holder then\n    redis.call('SET', lock, owner, 'PX', ttl)\n    return '+', ''",
		nodes: 3, ttl: 80 * time.Second, timeout: 20 * time.Second, play: playPlant,
	},
}

// playMajority: each of two clients reaches nodes that the other does not.
func playMajority(w *witness, cfg redlock.Config) {
	a, toA := w.apart(cfg)
	b, toB := w.apart(cfg)
	each(w.rig, 3, toA, (*Way).Cut)
	each(w.rig, 2, toB[3:], (*Way).Cut)
	first, ok := w.gains(0, a, redlock.WithoutRenewal())
	w.gains(1, b, redlock.WithoutRenewal())
	if ok {
		w.looks(0, first)
	}
}

// playRelease: a rival asks for what is held, does not hear the answers, and takes back what it may
// have got.
func playRelease(w *witness, cfg redlock.Config) {
	a := w.open(cfg)
	b, toB := w.apart(cfg)
	first, ok := w.gains(0, a, redlock.WithoutRenewal())
	if !ok {
		w.Fatal("the first has no lock")
	}
	each(w.rig, 3, toB, (*Way).LoseReplies)
	w.gains(1, b)
	each(w.rig, 3, toB, (*Way).Heal)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if _, ok := w.gains(2, a, redlock.WithoutRenewal()); ok {
			break
		}
	}
	w.looks(0, first)
}

// playExtend: a majority forgets the lock while it is held, and votes again later. The holder prolongs
// it once before that: later it could get some of them back before the rival has all.
func playExtend(w *witness, cfg redlock.Config) {
	a, b := w.open(cfg), w.open(cfg)
	first, ok := w.gains(0, a, redlock.WithoutRenewal())
	if !ok {
		w.Fatal("the first has no lock")
	}
	w.do(3, "FLUSHALL")
	forgot, extended := time.Now(), false
	w.within(4*cfg.TTL, "the rival has it", func() bool {
		if !extended && time.Since(forgot) > cfg.TTL*2/3 {
			extended = true
			_ = first.Extend(w.Context())
		}
		_, ok := w.gains(1, b, redlock.WithoutRenewal())
		return ok
	})
	w.looks(0, first)
}

// playPlant: a node has voted for the rival and forgets it, before the rival has the rest of its
// votes; then the first holder's extend comes to that node (protocol review, P1). The rival's votes
// may be as far apart as NodeTimeout: the node has to be back in that time.
func playPlant(w *witness, cfg redlock.Config) {
	a, toA := w.apart(cfg)
	b := w.open(cfg)
	for _, c := range []*redlock.Client{a, b} { // so that both know the nodes
		l := w.takeWithin(cfg.NodeTimeout, c, "k")
		w.free(l)
		w.gone(cfg.NodeTimeout, "k")
	}
	// Where registers differ the rival would have to raise one, on a node that has forgotten its key.
	// They begin a little apart, at the times of the nodes' admission, and those of the nodes that
	// answer last can stay so.
	ahead := time.Now().Add(2 * cfg.TTL).UnixMicro()
	w.do(3, "HSET", "ql:h:k", "token", ahead)
	first, ok := w.gains(0, a, redlock.WithoutRenewal(),
		redlock.WithTTL(cfg.NodeTimeout+2*time.Second))
	if !ok {
		w.Fatal("the first has no lock")
	}
	w.everywhere(b, "k")
	w.must(toA[2].Cut())
	w.do(1, "DEL", "k") // a minority may lose it

	// The rival asks the last node while the first's key is there; the node is frozen, and comes to
	// it when that has ended.
	left, err := w.Nodes[2].Do(w.Context(), "PTTL", "k")
	w.must(err)
	ends := time.Now().Add(time.Duration(left.(int64)) * time.Millisecond)
	w.within(cfg.TTL, "it is time for the rival", func() bool {
		return time.Until(ends) < cfg.NodeTimeout-time.Second
	})
	w.must(w.Nodes[2].Pause())
	rival := make(chan struct{})
	go func() { // until it ends, nobody else writes down anything
		defer close(rival)
		w.gains(1, b, redlock.WithoutRenewal())
	}()
	w.within(cfg.NodeTimeout, "the rival has a vote", func() bool {
		owner, err := w.Nodes[0].Do(w.Context(), "GET", "k")
		return err == nil && owner != nil
	})
	w.take(b, "behind it") // so the rival has heard of the vote
	each(w.rig, 1, w.Nodes, (*Node).Kill)
	each(w.rig, 1, w.Nodes, (*Node).StartEmpty)
	for first.Remaining() > 0 {
		ctx, cancel := context.WithTimeout(w.Context(), 200*time.Millisecond)
		err := first.Extend(ctx)
		cancel()
		if err == nil {
			break
		}
	}
	w.within(cfg.NodeTimeout, "the first's key has ended", func() bool { return time.Until(ends) < 0 })
	w.must(w.Nodes[2].Unpause())
	<-rival
	w.looks(0, first)
}

// playVariable says which one TestPlay is to play; it is for binaries with a broken engine.
const playVariable = "QUORUMLOCK_PLAY"

// played begins the line in which TestPlay tells the verdict.
const played = "porcupine says of the play: "

func TestPlay(t *testing.T) {
	name := os.Getenv(playVariable)
	engine, ok := brokenEngines[name]
	if !ok {
		return // it is for processes of TestTheCheckerCatchesBrokenEngines alone
	}
	t.Log(played + string(engine.verdict(t, name)))
}

// verdict plays it on nodes of its own. Others are played by other processes at the same time: the
// name keeps their pictures apart.
func (e brokenEngine) verdict(t *testing.T, name string) porcupine.CheckResult {
	t.Helper()
	w := &witness{rig: on(t, e.nodes)}
	w.admitted(redlock.Config{TTL: e.ttl})
	e.play(w, redlock.Config{TTL: e.ttl, NodeTimeout: e.timeout})
	result, picture, err := w.history.check("engine-" + strings.ReplaceAll(name, " ", "-"))
	w.must(err)
	if picture != "" {
		w.must(os.Remove(picture))
	}
	return result
}

func TestTheCheckerCatchesBrokenEngines(t *testing.T) {
	t.Parallel()
	for name, engine := range brokenEngines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := engine.verdict(t, name); got != porcupine.Ok {
				t.Errorf("of the whole product porcupine says %v, want Ok", got)
			}
			cmd := exec.CommandContext(t.Context(), engine.build(t), "-test.run=^TestPlay$", "-test.v")
			cmd.Env = append(os.Environ(), playVariable+"="+name, rowsVariable+"=")
			cmd.SysProcAttr = childAttr()
			runtime.LockOSThread() // see childAttr
			defer runtime.UnlockOSThread()
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), played+string(porcupine.Illegal)) {
				t.Errorf("broken: %v, want %q in:\n%s", err, played+porcupine.Illegal, out)
			}
		})
	}
}

// build makes the test binary with the rule taken out, without a change to any file of the tree.
func (e brokenEngine) build(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", e.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		t.Fatalf("%s has %q %d times, want once", e.file, e.old, n)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		changed: strings.Replace(string(text), e.old, e.new, 1), overlay: string(replace),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "broken.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay,
		"-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}
