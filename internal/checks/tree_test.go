package checks

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestImportsFollowTheRules(t *testing.T) {
	t.Parallel()
	pkgs := tree(t)
	for _, room := range []string{"quorum", "redlock"} {
		if !slices.ContainsFunc(pkgs, func(p pkg) bool { return p.path == room }) {
			t.Errorf("no package %s in the tree: the rules would hold of nothing", room)
		}
	}
	for _, fault := range faults(pkgs) {
		t.Error(fault)
	}
}

// listed is what is used of an answer of "go list -json".
type listed struct {
	Dir, ImportPath                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

// tree lists this module's packages.
func tree(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list",
		"-json=Dir,ImportPath,GoFiles,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	var pkgs []pkg
	for answers := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		switch err := answers.Decode(&l); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatalf("%v: %v", cmd, err)
		}
		pkgs = append(pkgs, pkg{
			path:    short(l.ImportPath),
			imports: shorten(l.Imports),
			tests:   shorten(slices.Concat(l.TestImports, l.XTestImports)),
			deps:    shorten(l.Deps),
			byFile:  importsByFile(t, l),
		})
	}
}

func short(path string) string { return strings.TrimPrefix(path, module+"/") }

func shorten(paths []string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = short(path)
	}
	return out
}

func importsByFile(t *testing.T, l listed) map[string][]string {
	t.Helper()
	byFile := map[string][]string{}
	for _, name := range l.GoFiles {
		file := filepath.Join(l.Dir, name)
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range tree.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			byFile[name] = append(byFile[name], short(path))
		}
	}
	return byFile
}
