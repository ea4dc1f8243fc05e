package quorum

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A trueClock is a node's clock as it really is, for sightings of it.
type trueClock struct {
	ahead time.Duration // of our monotonic clock
}

// see makes a sighting: the node read its clock at some moment between sent and received.
func (c *trueClock) see(sent, out, back time.Duration) sighting {
	return sighting{node: sent + out + c.ahead, sent: sent, received: sent + out + back}
}

// TestSkewHoldsTheTruth: without a step nothing is told, whatever round trips do and however the
// clock is slewed, and the true difference is always within what is known.
func TestSkewHoldsTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string, low, high time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, name))
		}
		limit := span("limit", 0, maxStep)
		c := trueClock{ahead: span("ahead", -1e6*time.Hour, 1e6*time.Hour)}
		now := span("now", 0, time.Hour)
		var s skew
		for range rapid.IntRange(1, 30).Draw(t, "sightings") {
			pause := span("pause", 0, 24*time.Hour)
			now += pause
			// The clock is slewed by no more than slewRate, in steps that are too small to matter.
			c.ahead += time.Duration(float64(pause) * rapid.Float64Range(-slewRate, slewRate).Draw(t, "slew"))
			see := c.see(now, span("out", 0, 10*time.Second), span("back", 0, 10*time.Second))
			now = see.received
			var step time.Duration
			if s, step = s.next(see, limit); step != 0 {
				t.Fatalf("a step of %v, there was none: %+v", step, s)
			}
			if c.ahead < s.least || c.ahead > s.most {
				t.Fatalf("the clock is %v ahead, known is %v to %v", c.ahead, s.least, s.most)
			}
			if width := s.most - s.least; width > see.received-see.sent {
				t.Fatalf("an uncertainty of %v, the round trip was %v", width, see.received-see.sent)
			}
		}
	})
}

// TestSkewFindsSteps: a step is found if it is larger than the limit, both round trips and what
// slewing explains together; and its size is right within these.
func TestSkewFindsSteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string, low, high time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, name))
		}
		limit := span("limit", 0, maxStep)
		c := trueClock{ahead: span("ahead", -1e6*time.Hour, 1e6*time.Hour)}
		first := c.see(0, span("out", 0, time.Second), span("back", 0, time.Second))
		s, step := skew{}.next(first, limit)
		if step != 0 {
			t.Fatalf("a step of %v at the first sighting", step)
		}
		pause := span("pause", 0, time.Hour)
		made := span("step", -2*time.Hour, 2*time.Hour)
		c.ahead += made
		second := c.see(first.received+pause, span("out", 0, time.Second), span("back", 0, time.Second))
		unsure := first.received + second.received - second.sent +
			time.Duration(float64(second.received-first.received)*slewRate) + time.Microsecond
		now, step := s.next(second, limit)
		switch {
		case step != 0 && (step.Abs() <= limit || (step-made).Abs() > unsure):
			t.Fatalf("a step of %v with limit %v, made was %v; unsure by %v", step, limit, made, unsure)
		case step == 0 && made.Abs() > limit+unsure:
			t.Fatalf("a step of %v not found; limit %v, unsure by %v", made, limit, unsure)
		case c.ahead < now.least || c.ahead > now.most:
			if made.Abs() > limit+unsure {
				t.Fatalf("the clock is %v ahead, known is %v to %v", c.ahead, now.least, now.most)
			}
		}
	})
}

// TestSkewOfOldSightings: flights can land in another order than they left.
func TestSkewOfOldSightings(t *testing.T) {
	t.Parallel()
	c := trueClock{ahead: time.Hour}
	s, _ := skew{}.next(c.see(10*time.Second, time.Millisecond, time.Millisecond), 0)
	if _, step := s.next(c.see(5*time.Second, time.Millisecond, time.Second), 0); step != 0 {
		t.Errorf("a step of %v by an older sighting", step)
	}
}

func TestStepLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ttl, want time.Duration
	}{
		{time.Second, 12 * time.Millisecond},
		{5 * time.Second, 52 * time.Millisecond},
		{10 * time.Second, 100 * time.Millisecond},
		{time.Hour, 100 * time.Millisecond},
	} {
		if got := stepLimit(c.ttl, 0.01); got != c.want {
			t.Errorf("TTL %v: limit %v, want %v", c.ttl, got, c.want)
		}
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	const h, ms = time.Hour, time.Millisecond
	for _, c := range []struct {
		name  string
		steps []time.Duration
		step  time.Duration
		want  int
	}{
		{"all", []time.Duration{h, h, h}, h, 3},
		{"found at slightly different moments", []time.Duration{h, h + 150*ms, h - 150*ms}, h, 3},
		{"some did not", []time.Duration{h, 0, 0}, h, 1},
		{"in the other direction", []time.Duration{h, -h, h}, h, 2},
		{"of another size", []time.Duration{h, 2 * h, h / 2}, h, 1},
		{"none", nil, h, 0},
	} {
		if got := together(c.steps, c.step, 100*ms); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
