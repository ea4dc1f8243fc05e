// Package replay is how random tests are told what to run: how many seeds, from which one on, or
// one seed that failed once more.
package replay

import (
	"os"
	"strconv"
	"testing"
)

// Number is the environment variable as a number; otherwise, where it is not set. What is no number
// fails the test.
func Number(tb testing.TB, name string, otherwise uint64) uint64 {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return n
}
