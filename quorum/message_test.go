package quorum

import (
	"testing"
	"time"
)

// TestWhichAcquiresShareACall: those that differ in nothing but the lock, also when a message with
// another TTL came between.
func TestWhichAcquiresShareACall(t *testing.T) {
	t.Parallel()
	e := New(nil, Settings{MaxTTL: time.Minute})
	token, proposed := "ql1:me/1", uint64(7)
	acquire := func(name string, ttl time.Duration) *Command {
		return e.acquireMessage(new(acquireParcel), name, &token, ttl, &proposed)
	}
	a, long, b := acquire("a", time.Second), acquire("a", 2*time.Second), acquire("b", time.Second)
	e.noteMaxTTL(time.Hour)
	later := acquire("b", time.Second)
	for _, tc := range []struct {
		what        string
		one, other  *Command
		share       bool
		ttl, larger string // of the other
	}{
		{"two locks", a, b, true, "1000", "60000"},
		{"another TTL", a, long, false, "2000", "60000"},
		{"a larger MaxTTL heard of between them", a, later, false, "1000", "3600000"},
	} {
		if got := tc.one.sharesWith(tc.other); got != tc.share {
			t.Errorf("%s: they share a call: got %t, want %t", tc.what, got, tc.share)
		}
		words := tc.other.Words()
		if ttl, larger := words[5], words[11]; ttl != tc.ttl || larger != tc.larger {
			t.Errorf("%s: got a TTL of %s and a largest MaxTTL of %s, want %s and %s",
				tc.what, ttl, larger, tc.ttl, tc.larger)
		}
	}
}
