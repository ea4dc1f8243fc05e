package redisproc

import (
	"errors"
	"os"
	"testing"
)

// ForTest is Start for a test or benchmark: the nodes end with it, a failure to start fails it,
// and the nodes' logs are shown if it failed. Without a redis-server, or without the compiler
// that WithClock needs, the test is skipped; with CI=true in the environment it fails, since
// there nobody would notice.
func ForTest(tb testing.TB, count int, opts ...Option) Nodes {
	tb.Helper()
	nodes, err := Start(tb.Context(), count, opts...)
	switch {
	case err == nil:
	case mayBeMissing(err):
		skip(tb, err)
	default:
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			for _, n := range nodes {
				tb.Logf("log of %s ends:\n%s", n.Addr(), n.logTail())
			}
		}
		if err := nodes.Close(); err != nil {
			tb.Error(err)
		}
	})
	return nodes
}

// Require skips a test that needs a redis-server where there is none; with CI=true or
// QUORUMLOCK_REQUIRE_REDIS=1 it fails.
func Require(tb testing.TB) {
	tb.Helper()
	if _, err := Find(); err != nil {
		skip(tb, err)
	}
}

// skip leaves a test out for want of something, except where nobody would notice.
func skip(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("QUORUMLOCK_REQUIRE_REDIS") == "1" {
		tb.Fatalf("nothing may be left out (CI=true or QUORUMLOCK_REQUIRE_REDIS=1): %v", err)
	}
	tb.Skip(err)
}

func mayBeMissing(err error) bool {
	return errors.Is(err, ErrNoServer) || errors.Is(err, ErrNoCompiler) ||
		errors.Is(err, errors.ErrUnsupported)
}
