package integration

import (
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
	ttl            time.Duration
	play           func(w *witness, cfg redlock.Config)
}

var brokenEngines = map[string]brokenEngine{
	"majority off by one": {
		file: "quorum/majority.go", old: "return n/2 + 1", new: "return max(n/2, 1)",
		ttl: 30 * time.Second, play: playMajority,
	},
	"release without owner check": {
		file: "internal/script/release.lua", old: "if holder ~= owner then", new: "if holder == '' then",
		ttl: 30 * time.Second, play: playRelease,
	},
	"nodes without the key counted": {
		file: "quorum/hold.go", old: "case t.Ours >= quorum:\n\t\treturn HoldKept",
		new: "case t.Ours+t.Nobody >= quorum:\n\t\treturn HoldKept",
		ttl: 6 * time.Second, play: playExtend,
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

// playExtend: a majority forgets the lock while it is held, and votes again later.
func playExtend(w *witness, cfg redlock.Config) {
	a, b := w.open(cfg), w.open(cfg)
	first, ok := w.gains(0, a)
	if !ok {
		w.Fatal("the first has no lock")
	}
	w.do(3, "FLUSHALL")
	w.within(4*cfg.TTL, "the rival has it", func() bool {
		_, ok := w.gains(1, b, redlock.WithoutRenewal())
		return ok
	})
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
	w := &witness{rig: on(t, 5)}
	w.admitted(redlock.Config{TTL: e.ttl})
	e.play(w, redlock.Config{TTL: e.ttl, NodeTimeout: time.Second})
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
