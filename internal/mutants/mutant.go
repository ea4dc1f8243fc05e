package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Mutant is the code with one rule taken away.
type Mutant struct {
	Name string
	Rule string // which it takes away, and where that comes from
	File string // from the module's root
	Old  string // stands exactly once in File
	New  string

	Package string   // with the test that has to fail
	Run     string   // that test, as for go test -run
	Env     []string // of the test
}

// A Result says what became of a mutant.
type Result int

// What can become of a mutant.
const (
	Caught   Result = iota // the test failed
	Survived               // the test passed
	Broken                 // nothing was proved: it does not compile, or the test did not run
)

func (r Result) String() string { return [...]string{"caught", "SURVIVED", "BROKEN"}[r] }

// Apply is the mutant's file as it is and as it would be.
func (m *Mutant) Apply(root string) (before, after string, err error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", "", err
	}
	before = string(text)
	if n := strings.Count(before, m.Old); n != 1 {
		return "", "", fmt.Errorf("%s: the text is %d times in %s, want once:\n%s",
			m.Name, n, m.File, m.Old)
	}
	return before, strings.Replace(before, m.Old, m.New, 1), nil
}

// Try runs the mutant's test against it. The output is go test's, for mutants that were not caught.
func (m *Mutant) Try(ctx context.Context, root string) (Result, string, error) {
	_, after, err := m.Apply(root)
	if err != nil {
		return Broken, "", err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return Broken, "", err
	}
	defer os.RemoveAll(dir)
	mutated := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(mutated, []byte(after), 0o600); err != nil {
		return Broken, "", err
	}
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, m.File): mutated}})
	if err != nil {
		return Broken, "", err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return Broken, "", err
	}
	result, output := m.test(ctx, root, "-overlay", path)
	return result, output, nil
}

// Sound runs the test without the mutant; it has to pass.
func (m *Mutant) Sound(ctx context.Context, root string) (Result, string) {
	return m.test(ctx, root)
}

func (m *Mutant) test(ctx context.Context, root string, flags ...string) (Result, string) {
	args := append([]string{"test", "-count=1", "-vet=off", "-timeout=5m", "-v", "-run", m.Run},
		flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, m.Package)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), m.Env...)
	out, err := cmd.CombinedOutput()
	output := string(out)
	switch {
	case !strings.Contains(output, "=== RUN "):
		return Broken, output
	case err == nil:
		return Survived, output
	case strings.Contains(output, "panic: test timed out"):
		return Broken, output
	case strings.Contains(output, "--- FAIL: "), strings.Contains(output, "\npanic: "):
		return Caught, output // a panic on a goroutine of the code's own fails no test by name
	}
	return Broken, output
}
