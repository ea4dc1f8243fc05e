package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// commit is that of the code which runs: the one that go build noted, or, with go run, which notes
// none, that of the directory where the code is. "" where neither is known.
func commit() string {
	info, _ := debug.ReadBuildInfo()
	if noted := notedCommit(info); noted != "" {
		return noted
	}
	return checkedOut(git)
}

// shortCommit is how many digits of a commit are shown.
const shortCommit = 9

// notedCommit is what go build noted.
func notedCommit(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	var revision, changes string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), shortCommit)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changes
}

// checkedOut asks git.
func checkedOut(git func(args ...string) (string, error)) string {
	revision, err := git("rev-parse", "--short=9", "HEAD")
	if err != nil {
		return ""
	}
	if changed, err := git("status", "--porcelain"); err != nil || changed != "" {
		revision += "+changes"
	}
	return revision
}

// git is the answer of git in this file's directory; an error where there is no such directory, or no
// git, or it is under no version control.
func git(args ...string) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Dir(file)
	answer, err := cmd.Output()
	return strings.TrimSpace(string(answer)), err
}
