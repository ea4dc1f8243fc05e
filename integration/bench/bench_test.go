package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// commandVariable makes the tests' program the command, with its arguments.
const commandVariable = "QUORUMLOCK_BENCH_TEST_COMMAND"

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // a node that is dead is what a part of this is about
	if is, err := isMember(); is {
		endMember(err)
	}
	if os.Getenv(commandVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// tiny runs every workload, each for a moment.
func tiny() form {
	return form{
		name: "tiny", limit: 2 * time.Minute, rounds: 2, oneNode: true, pairSpan: 20 * time.Millisecond,
		pairs: []pairCell{
			{nodes: 3, callers: 2, delay: 2 * time.Millisecond, waits: true},
			{nodes: 5, callers: 1, bare: true},
			{nodes: 5, callers: 64, bare: true, troubles: []trouble{oneDead, oneFrozen, oneSlow}},
		},
		handoffs: []handoffCell{{2, 3, 0}, {2, 3, 4 * time.Millisecond}, {6, 1, 0}}, handoffSpan: 100 * time.Millisecond, processes: 2,
		waiting: 3, waitSpan: 50 * time.Millisecond,
		campaigns: []campaign{{most: time.Millisecond, contenders: []int{2}, elections: 2}},
		holdings:  []int{50}, holdTTL: 2 * time.Second,
		ticks: []tickCell{{2, 3}, {2, 1}}, tickRounds: 1,
		outages: []outageCell{
			{trouble: oneDead, callers: 2, span: 60 * time.Millisecond},
			{trouble: oneFrozen, callers: 2, span: 60 * time.Millisecond},
		},
	}
}

// TestRuns does not judge any time: it is the command that is tested here. The runs are one after
// the other, so that what they leave can be seen.
func TestRuns(t *testing.T) {
	t.Parallel()
	redisproc.Require(t)
	t.Run("every workload is run and printed", everyWorkload)
	t.Run("a run whose time is up ends soon and says so", timeIsUp)
	t.Run("no goroutine is left", nothingLeft)
}

func everyWorkload(t *testing.T) {
	dir := t.TempDir()
	s := settings{form: tiny(), command: "make bench",
		files: files{out: filepath.Join(dir, "bench.md"), svg: filepath.Join(dir, "bench.svg")}}
	var out strings.Builder
	if err := run(t.Context(), s, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	for _, want := range []string{"Targets", "Lock + unlock", "Hand-off", "Waiting", "Elections",
		"Held locks", "Ticks", "comes back", oursName, oursIn(oneDead), oursIn(oneFrozen),
		oursIn(oneSlow), bareName, leanName, waitName, "redsync fail-fast", oursOneName, rueidislockName,
		"redislock (one node)", gocronName} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed", want)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "first failure") && !strings.Contains(line, "redsync") {
			t.Error(line)
		}
	}
	page, err := os.ReadFile(s.files.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"(bench.svg)", "`make bench`"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	picture, err := os.ReadFile(s.files.svg)
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, string(picture))
}

func timeIsUp(t *testing.T) {
	f := tiny()
	f.pairSpan, f.limit = time.Minute, 2*time.Second
	began := time.Now()
	err := run(t.Context(), settings{form: f}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "given up after 2s") {
		t.Errorf("got %v, want an error that says that the run was given up", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("ended after %v, want soon after 2 s", took)
	}
}

// nothingLeft gives goroutines that are about to end some time for it.
func nothingLeft(t *testing.T) {
	var left []string
	for range 100 {
		if left = goroutines(); len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
}

// goroutines are those of the libraries and of this program, tests aside.
func goroutines() []string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var some []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(stack, "github.com/") && !strings.Contains(stack, "testing.tRunner(") &&
			!strings.Contains(stack, "testing.(*M)") {
			some = append(some, stack)
		}
	}
	return some
}

func TestFormsAreKnownByName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"short", "core", "delay", "full"} {
		if f, err := formNamed(name); err != nil || f.name != name {
			t.Errorf("form %q: got %q, %v", name, f.name, err)
		}
	}
	_, err := formNamed("fill")
	if err == nil || !strings.Contains(err.Error(), "short, core, delay, handoff, full") {
		t.Errorf("got %v, want an error that names the forms there are", err)
	}
	var s settings
	if err := s.chosen("core", []string{"short"}); err == nil {
		t.Error("an argument that is no flag was taken")
	}
}

func TestAFormHasTheNodesItNeeds(t *testing.T) {
	t.Parallel()
	f := tiny()
	if got := f.nodes(); got != 5 {
		t.Errorf("%d nodes, want 5", got)
	}
	if got := f.troubles(); len(got) != 3 {
		t.Errorf("troubles %q, want three", got)
	}
	f = form{pairs: []pairCell{{nodes: 7}}}
	if got := f.nodes(); got != 7 {
		t.Errorf("%d nodes, want 7", got)
	}
}

// The short form is to be done within 90 s: what is between the samples takes a tenth.
func TestTheShortFormIsShortAndSaysWhatBoundsIt(t *testing.T) {
	t.Parallel()
	var took time.Duration
	for _, c := range short.pairs {
		contestants := len(quorumPeers()) + len(c.ceilings(make(redisproc.Nodes, c.nodes))) + len(c.troubles)
		took += time.Duration(short.rounds*contestants) * (short.pairSpan + settle)
		if !c.bare {
			t.Errorf("%v: no bounds", c)
		}
	}
	if most := 80 * time.Second; took > most {
		t.Errorf("its samples take %v, want at most %v", took, most)
	}
}

func TestEveryFormButTheFullOneSaysWhatThatHasMore(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		if said := f.said(); strings.Contains(said, "`make bench-full` has more: ") != (f.name != "full") ||
			!strings.Contains(said, "the "+f.name+" form") {
			t.Errorf("%s: got %q", f.name, said)
		}
	}
}

func TestTheFullFormHasAllOfTheOthers(t *testing.T) {
	t.Parallel()
	f := full()
	if got, want := len(f.pairs), len(core.pairs)+len(delayed.pairs)+6; got != want {
		t.Errorf("%d cells of pairs, want %d", got, want)
	}
	for _, nodes := range []int{3, 5, 7} {
		for _, callers := range []int{1, 8, 64, 512} {
			if !slices.ContainsFunc(f.pairs, func(c pairCell) bool {
				return c.nodes == nodes && c.callers == callers && c.delay == 0
			}) {
				t.Errorf("no pairs of %d callers on %d nodes", callers, nodes)
			}
		}
	}
	if got := len(f.troubles()); got != 6 {
		t.Errorf("%d troubles, want 6: one and two nodes, dead, frozen and slow", got)
	}
	for _, c := range f.pairs {
		if c.delay > 0 && !c.waits {
			t.Errorf("%v: nothing bounds it but lone PINGs", c)
		}
	}
	if len(core.troubles()) != 2 {
		t.Error("core has changed with it")
	}
}
