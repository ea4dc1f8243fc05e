package main

import (
	"errors"
	"runtime/debug"
	"testing"
)

func TestACommitIsThatOfTheBuild(t *testing.T) {
	t.Parallel()
	noted := func(settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings,
				debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const revision = "0123456789abcdef"
	for _, tc := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, ""}, {noted(), ""}, {noted("vcs.modified", "true"), ""},
		{noted("vcs.revision", revision, "vcs.modified", "false"), "012345678"},
		{noted("vcs.modified", "true", "vcs.revision", revision), "012345678+changes"},
	} {
		if got := notedCommit(tc.info); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.info, got, tc.want)
		}
	}
}

func TestACommitIsThatOfTheDirectoryWhereTheBuildNotesNone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status string
		err    error
		want   string
	}{{"", nil, "abc"}, {" M main.go", nil, "abc+changes"}, {"", errors.New("no git"), ""}} {
		got := checkedOut(func(args ...string) (string, error) {
			if args[0] == "status" {
				return tc.status, tc.err
			}
			return "abc", tc.err
		})
		if got != tc.want {
			t.Errorf("%q, %v: got %q, want %q", tc.status, tc.err, got, tc.want)
		}
	}
}
