package mutants

import (
	"os"
	"testing"
)

// root is the module's, from here.
const root = "../.."

// TestMutants checks that every mutant's text is still there, and with QUORUMLOCK_MUTANTS=1 that
// every mutant is caught.
func TestMutants(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, m := range All {
		if names[m.Name] {
			t.Errorf("two mutants are named %q", m.Name)
		}
		names[m.Name] = true
		before, after, err := m.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if before == after || m.Rule == "" || m.Package == "" || m.Run == "" {
			t.Errorf("%s: it changes nothing, or lacks its rule or its test", m.Name)
		}
	}
	if os.Getenv("QUORUMLOCK_MUTANTS") != "1" || t.Failed() {
		return
	}
	if err := Run(t.Context(), root, All, t.Output()); err != nil {
		t.Error(err)
	}
}
