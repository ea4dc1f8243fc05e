package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modes are what this test program can be instead of tests, by its first argument.
var modes = map[string]func(args []string) int{replicaMode: replicaMain}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if mode, ok := modes[os.Args[1]]; ok {
			os.Exit(mode(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func TestAnInterruptIsNoFailure(t *testing.T) {
	t.Parallel()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var errs strings.Builder
	if got := run(ctx, []string{"-nodes", "1", "-replicas", "2"}, out, &errs); got != 130 {
		t.Errorf("exit status %d, want 130, as shells have it for SIGINT", got)
	}
	if got := errs.String(); got != "demo: interrupted\n" {
		t.Errorf("it said %q", got)
	}
}
