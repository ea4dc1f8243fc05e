package checks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	module  = "github.com/quorumlock/quorumlock"
	goRedis = "github.com/redis/go-redis/v9"
	gocron  = "github.com/go-co-op/gocron"
	redsync = "github.com/go-redsync/redsync"
)

// A pkg is what the rules look at. Paths of this module are without its name: "quorum".
type pkg struct {
	path    string
	imports []string            // by its files that are no tests
	tests   []string            // by its tests alone
	deps    []string            // all that its non-test files need, directly or not
	byFile  map[string][]string // imports of each non-test file; the rules need it for redlock
}

// rooms in the order of the arrows: each may import those after it, never those before.
var rooms = []string{"schedule", "redlock", "quorum"}

// testLibraries are for tests; what applications import must not bring them along.
var testLibraries = []string{
	"github.com/alicebob/miniredis", redsync, "pgregory.net/rapid",
	"github.com/testcontainers", "github.com/Shopify/toxiproxy", "github.com/anishathalye/porcupine",
}

// testRooms are our own packages for tests and tools.
var testRooms = []string{
	"internal/amnesia", "internal/checks", "internal/elections", "internal/embedded",
	"internal/fakenode", "internal/fleet", "internal/holds", "internal/loopback", "internal/model",
	"internal/mutants", "internal/nodetest", "internal/pairs", "internal/redisproc", "internal/replay",
	"internal/sim", "internal/ticktest",
}

// exceptions are the packages whose purpose is what is otherwise refused.
var exceptions = map[string][]string{
	"redlock/redsyncpool": {redsync},                        // speaks redsync's interface
	"redlock/redlocktest": {"internal/fakenode", "testing"}, // nodes in memory for users' tests
	// A program, not a package to import: it brings its own nodes.
	"docs/demo": {"internal/embedded", "internal/loopback", "testing", "github.com/alicebob/miniredis"},
	// A tool that measures schedulers, so it is where gocron may be.
	"schedule/internal/ticks": {"internal/embedded", "internal/fleet", "internal/loopback",
		"internal/redisproc", "testing", "github.com/alicebob/miniredis"},
}

// redisFiles are the files of redlock that may name go-redis: the field of Config and what makes
// nodes of it.
var redisFiles = []string{"client.go", "config.go"}

// under reports whether path is root or below it; of a foreign module, in any major version.
func under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func underAny(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return under(path, root) })
}

// public reports whether applications can import the package.
func (p *pkg) public() bool { return !under(p.path, "internal") }

// faults returns what breaks a rule, a line each.
func faults(pkgs []pkg) []string {
	library := map[string]bool{} // all that applications get
	for _, p := range pkgs {
		if p.public() {
			library[p.path] = true
			for _, dep := range p.deps {
				library[dep] = true
			}
		}
	}
	var found []string
	for _, p := range pkgs {
		found = append(found, arrowFaults(p)...)
		found = append(found, gocronFaults(p)...)
		found = append(found, redisFaults(p, library[p.path])...)
		found = append(found, testingFaults(p)...)
	}
	return found
}

// arrowFaults: schedule -> redlock -> quorum -> internal, and never back.
func arrowFaults(p pkg) []string {
	var found []string
	room := slices.IndexFunc(rooms, func(root string) bool { return under(p.path, root) })
	for _, dep := range p.deps {
		if room > 0 && underAny(dep, rooms[:room]) {
			found = append(found, fmt.Sprintf("%s needs %s: arrows point the other way", p.path, dep))
		}
	}
	return found
}

// gocronFaults: nobody but schedule knows gocron, not even in tests; and the demo and the example,
// which stand for applications.
func gocronFaults(p pkg) []string {
	if under(p.path, "schedule") || p.path == "docs/demo" || p.path == "docs/example" {
		return nil
	}
	var found []string
	for _, path := range slices.Concat(p.imports, p.tests) {
		if under(path, gocron) {
			found = append(found, p.path+" imports gocron: that is for schedule alone")
		}
	}
	return found
}

// redisFaults: go-redis is for quorum, for redlock's configuration, and for what is no part of
// the library.
func redisFaults(p pkg, library bool) []string {
	switch {
	case !library, under(p.path, "quorum"):
		return nil
	case p.path == "redlock/redsyncpool": // wraps clients for redsync, as Config.Clients has them
		return nil
	case p.path != "redlock" && slices.ContainsFunc(p.imports, isGoRedis):
		return []string{p.path + " imports go-redis: that is for quorum and redlock's Config"}
	case p.path != "redlock":
		return nil
	}
	var found []string
	for file, imports := range p.byFile {
		if slices.ContainsFunc(imports, isGoRedis) && !slices.Contains(redisFiles, file) {
			found = append(found, fmt.Sprintf("redlock/%s imports go-redis: only %s may",
				file, strings.Join(redisFiles, ", ")))
		}
	}
	return found
}

func isGoRedis(path string) bool { return under(path, goRedis) }

// testingFaults: no application gets libraries or packages that are for tests.
func testingFaults(p pkg) []string {
	if !p.public() {
		return nil
	}
	refused := slices.Concat(testLibraries, testRooms, []string{"testing"})
	var found []string
	for _, dep := range p.deps {
		// testing/fstest and the like are packages of their own, but of the same kind.
		if underAny(dep, refused) && !underAny(dep, exceptions[p.path]) {
			found = append(found, fmt.Sprintf("%s needs %s: that is for tests", p.path, dep))
		}
	}
	return found
}

func TestEachRuleBites(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pkgs []pkg
		want string // a part of the only fault; none: lawful
	}{
		"quorum needs redlock": {
			[]pkg{{path: "quorum", deps: []string{"redlock"}}}, "arrows",
		},
		"redlock needs schedule below internal": {
			[]pkg{{path: "redlock/x", deps: []string{"internal/door", "schedule/y"}}}, "arrows",
		},
		"schedule needs all": {
			[]pkg{{path: "schedule", deps: []string{"redlock", "quorum", "internal/door"}}}, "",
		},
		"a tool needs redlock": {
			[]pkg{{path: "internal/elections", deps: []string{"redlock"}}}, "",
		},
		"gocron in redlock": {
			[]pkg{{path: "redlock", imports: []string{gocron + "/v2"}}}, "gocron",
		},
		"gocron in a test of internal": {
			[]pkg{{path: "internal/x", tests: []string{gocron + "/v2"}}}, "gocron",
		},
		"gocron in schedule": {
			[]pkg{{path: "schedule", imports: []string{gocron + "/v2"}}}, "",
		},
		"go-redis in schedule": {
			[]pkg{{path: "schedule", imports: []string{goRedis}}}, "go-redis",
		},
		"go-redis in a room that redlock needs": {
			[]pkg{
				{path: "redlock", deps: []string{"internal/door"}},
				{path: "internal/door", imports: []string{goRedis}},
			}, "go-redis",
		},
		"go-redis in another file of redlock": {
			[]pkg{{path: "redlock", byFile: map[string][]string{"lock.go": {goRedis}}}}, "lock.go",
		},
		"go-redis in redlock's configuration, in quorum, in a helper": {
			[]pkg{
				{path: "redlock", byFile: map[string][]string{"config.go": {goRedis}},
					imports: []string{goRedis}, deps: []string{"quorum", goRedis}},
				{path: "quorum", imports: []string{goRedis}},
				{path: "internal/embedded", imports: []string{goRedis}},
			}, "",
		},
		"miniredis in quorum": {
			[]pkg{{path: "quorum", deps: []string{"github.com/alicebob/miniredis/v2"}}}, "for tests",
		},
		"miniredis in redlocktest": {
			[]pkg{{path: "redlock/redlocktest",
				deps: []string{"testing", "internal/fakenode", "github.com/alicebob/miniredis/v2"}}},
			"for tests",
		},
		"redsync in redlock": {
			[]pkg{{path: "redlock", deps: []string{redsync + "/v4/redis"}}}, "for tests",
		},
		"redsync and go-redis in redsyncpool": {
			[]pkg{{path: "redlock/redsyncpool", imports: []string{goRedis},
				deps: []string{redsync + "/v4/redis", goRedis}}}, "",
		},
		"testing in redlock": {
			[]pkg{{path: "redlock", deps: []string{"testing"}}}, "for tests",
		},
		"a fake in redlock": {
			[]pkg{{path: "redlock", deps: []string{"internal/fakenode"}}}, "for tests",
		},
		"a name that only begins alike": {
			[]pkg{{path: "quorum", deps: []string{"testinglike", "redlocks"}}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := faults(tc.pkgs)
			lawful := tc.want == ""
			if lawful && len(got) > 0 ||
				!lawful && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
