package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHelpSaysWhichFormsThereAre(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	if _, err := settingsFrom([]string{"-h"}, &told); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got %v, want that help was given", err)
	}
	for _, f := range forms {
		if f.about == "" || f.takes == "" ||
			!strings.Contains(told.String(), f.about+" ("+f.takes+")\n") {
			t.Errorf("help does not say what %s has and how long it takes:\n%s", f.name, told.String())
		}
	}
	if strings.Contains(told.String(), "go run ./bench -h") {
		t.Errorf("help shows its own command line:\n%s", told.String())
	}
}

func TestTheCommandIsWhatWasRunUnlessGiven(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, want string }{
		{"", "go run ./bench"}, {"-form short", "go run ./bench -form short"},
		{"-form short -command make", "make"},
	} {
		s, err := settingsFrom(strings.Fields(tc.args), io.Discard)
		if err != nil || s.command != tc.want {
			t.Errorf("%q: got %q, %v, want %q", tc.args, s.command, err, tc.want)
		}
	}
}

func TestWrongFlagsAreToldInOneLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"short": "only flags", "-form fill": "short, core, delay, handoff, full", "-no-such": "-no-such",
	} {
		var told strings.Builder
		if got := command(strings.Fields(args), io.Discard, &told); got != 2 {
			t.Errorf("%s: status %d, want 2", args, got)
		}
		if !strings.Contains(told.String(), want) || strings.Count(told.String(), "\n") != 1 {
			t.Errorf("%s: got %q, want one line with %q", args, told.String(), want)
		}
	}
}

func TestWhereAFileCannotBeWrittenNothingIsMeasured(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "there.md")
	if err := os.WriteFile(there, []byte("an older page"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing", "x")
	for want, f := range map[string]files{
		"-out: ":                         {out: missing},
		"-svg: ":                         {out: there, svg: missing},
		"-out: open " + dir:              {out: dir},
		"-out and -svg are the same":     {out: there, svg: dir + "/./there.md"},
		"-svg: open " + missing + ": no": {svg: missing},
	} {
		// The form has no time: another error would say that a run had begun.
		err := run(t.Context(), settings{files: f}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", f, err, want)
		}
	}
	if err := (files{out: there, svg: filepath.Join(dir, "new.svg")}).check(); err != nil {
		t.Error(err)
	}
	if page, err := os.ReadFile(there); string(page) != "an older page" {
		t.Errorf("the page that was there is now %q, %v", page, err)
	}
	if all, err := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("the check left %v, %v", all, err)
	}
}
