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
	case mayBeMissing(err) && os.Getenv("CI") != "true":
		tb.Skip(err)
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

func mayBeMissing(err error) bool {
	return errors.Is(err, ErrNoServer) || errors.Is(err, ErrNoCompiler) ||
		errors.Is(err, errors.ErrUnsupported)
}
