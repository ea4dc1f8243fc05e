package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestElapsedIsTheLargerOfBothClocks(t *testing.T) {
	t.Parallel()
	at := func(mono, wall time.Duration) Reading { return Reading{Mono: mono, Wall: wall} }
	for _, c := range []struct {
		name          string
		earlier, now  Reading
		since, remain time.Duration // remain: until earlier + 10
	}{
		{"both move", at(5, 100), at(8, 103), 3, 7},
		{"suspended: monotonic stands still", at(5, 100), at(5, 112), 12, -2},
		{"wall stepped back", at(5, 100), at(8, 40), 3, 7},
		{"wall stepped forward", at(5, 100), at(6, 5000), 4900, -4890},
	} {
		if got := c.now.Since(c.earlier); got != c.since {
			t.Errorf("%s: Since = %d, want %d", c.name, got, c.since)
		}
		if got := c.now.Until(c.earlier.Add(10)); got != c.remain {
			t.Errorf("%s: Until = %d, want %d", c.name, got, c.remain)
		}
	}
}

func TestSystemReadsBothClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before := System{}.Now()
		time.Sleep(3 * time.Second)
		after := System{}.Now()
		if after.Mono-before.Mono != 3*time.Second || after.Wall-before.Wall != 3*time.Second {
			t.Errorf("after 3s: %v, %v", after.Mono-before.Mono, after.Wall-before.Wall)
		}
		if got, want := after.Time(), time.Now(); !got.Equal(want) {
			t.Errorf("Time() = %v, want %v", got, want)
		}
		if before.IsZero() || !(Reading{}).IsZero() {
			t.Error("IsZero")
		}
	})
}
