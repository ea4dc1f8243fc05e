package main

import (
	"os"
	"strings"
	"testing"
)

// TestTheReadmeShowsThisProgram: what a reader copies is what was compiled.
func TestTheReadmeShowsThisProgram(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(program)+"```\n") {
		t.Error("README.md does not show docs/example/main.go as it is")
	}
}
