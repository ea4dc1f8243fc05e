package quorum_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

func drawSpan(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(7*24*time.Hour)).Draw(t, name))
}

// TestValidityIsTTLLessElapsedLessDrift is SPSCommerce/redlock-py 3: a sign slip added the drift
// allowance instead of taking it off.
func TestValidityIsTTLLessElapsedLessDrift(t *testing.T) {
	t.Parallel()
	if got, want := quorum.Validity(time.Second, 100*time.Millisecond, 0.01),
		888*time.Millisecond; got != want {
		t.Errorf("TTL 1 s, elapsed 100 ms, drift 1%% and 2 ms: validity %v, want %v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		ttl, elapsed := drawSpan(t, "ttl"), drawSpan(t, "elapsed")
		factor := rapid.Float64Range(0, 0.5).Draw(t, "factor")
		more := drawSpan(t, "more")
		validity := quorum.Validity(ttl, elapsed, factor)
		if limit := ttl - elapsed - time.Duration(float64(ttl)*factor); validity > limit {
			t.Fatalf("validity %v, above TTL - elapsed - drift, %v", validity, limit)
		}
		if validity > ttl {
			t.Fatalf("validity %v above the TTL of %v", validity, ttl)
		}
		if got := quorum.Validity(ttl, elapsed+more, factor); got > validity {
			t.Fatalf("%v later the validity has grown from %v to %v", more, validity, got)
		}
		if got := quorum.Validity(ttl, elapsed, factor+0.1); got > validity {
			t.Fatalf("with more drift the validity has grown from %v to %v", validity, got)
		}
	})
}

func TestClockThatWentBackGivesNoMoreThanTheTTL(t *testing.T) {
	t.Parallel()
	fresh := quorum.Validity(time.Second, 0, 0.01)
	if got := quorum.Validity(time.Second, -time.Hour, 0.01); got != fresh {
		t.Errorf("validity after -1 h is %v, want that of a fresh lock, %v", got, fresh)
	}
}

func TestElapsedIsTheLargerOfBothClocks(t *testing.T) {
	t.Parallel()
	e := quorum.New(nil, quorum.Settings{
		NodeTimeout: time.Second, MaxTTL: 10 * time.Second, DriftFactor: 0.01,
		Clock: still{Mono: time.Second, Wall: 5 * time.Second},
	})
	for _, c := range []struct {
		name  string
		start clock.Reading
		want  time.Duration
	}{
		{"the machine was suspended: the wall clock went on", clock.Reading{}, 10*time.Second -
			5*time.Second - 102*time.Millisecond},
		{"the wall clock was put back", clock.Reading{Wall: 60 * time.Second}, 10*time.Second -
			time.Second - 102*time.Millisecond},
	} {
		if got := e.Validity(10*time.Second, c.start); got != c.want {
			t.Errorf("%s: validity %v, want %v", c.name, got, c.want)
		}
	}
}

// still is a clock that stands.
type still clock.Reading

func (s still) Now() clock.Reading { return clock.Reading(s) }
