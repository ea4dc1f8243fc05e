package redlock

import (
	"math"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A queue of waiters, all of whom draw at first, becomes a rotation: nobody meets anybody, and there
// is always one that asks at once.
func TestRanksBecomeARotation(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 2, 3, 8} {
		crowd := waiters + 1 // and the holder
		ranks := make([]rank, waiters)
		had := make([]bool, waiters)
		freed, met, late := quorum.Unranked, 0, 0
		const handOffs = 3000
		for k := range handOffs {
			first := 0
			for i := range ranks {
				ranks[i].heard(freed, crowd, had[i])
				if ranks[i].ahead < ranks[first].ahead {
					first = i
				}
			}
			alike := 0
			for i := range ranks {
				if i != first && ranks[i].ahead == ranks[first].ahead {
					ranks[i].come = true
					ranks[i].refused(true)
					alike++
				}
			}
			if k >= handOffs-500 {
				met += alike
				late += ranks[first].ahead
			}
			freed, had[first], ranks[first] = ranks[first].ahead, true, rank{}
		}
		if met > 0 || late > 0 {
			t.Errorf("%d waiters: in the last 500 hand-offs %d met another, and %d places were left empty",
				waiters, met, late)
		}
	}
}

func TestARankMovesUpPastTheOneWhoFreed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ahead, freed, want int }{
		{ahead: 3, freed: 0, want: 2},
		{ahead: 3, freed: 2, want: 0},
		{ahead: 3, freed: 5, want: 0},
		{ahead: 3, freed: quorum.Unranked, want: 3}, // somebody came in between
		{ahead: 0, freed: 0, want: 0},
		{ahead: 30, freed: 0, want: 9}, // more than there are
		{ahead: 3, freed: math.MaxInt, want: 0},
	} {
		r := rank{ahead: c.ahead, drawn: true}
		if r.heard(c.freed, 10, true); r.ahead != c.want {
			t.Errorf("%d ahead, freed by one with %d: %d, want %d", c.ahead, c.freed, r.ahead, c.want)
		}
	}
}

func TestWhoHadTheLockStandsAtTheEnd(t *testing.T) {
	t.Parallel()
	for crowd, want := range map[int]int{-1: 0, 0: 0, 1: 0, 2: 0, 3: 1, 17: 15} {
		var r rank
		if r.heard(0, crowd, true); r.ahead != want {
			t.Errorf("of a crowd of %d: %d ahead, want %d", crowd, r.ahead, want)
		}
	}
}

// Only who asked in its rank has met somebody, and then it draws, also if it had the lock before.
func TestWhoMeetDrawAnew(t *testing.T) {
	t.Parallel()
	drew := make(map[int]bool)
	for range 200 {
		r := rank{ahead: 0, drawn: true, come: true}
		if !r.refused(true) {
			t.Fatal("it met somebody, and does not draw")
		}
		r.heard(0, 5, true)
		drew[r.ahead] = true
	}
	if len(drew) != 5 {
		t.Errorf("drew %v, want each of 0 to 4 in 200 times", drew)
	}
	for _, r := range []rank{
		{ahead: 2, drawn: true},             // a try that the clock woke
		{ahead: 2, drawn: true, come: true}, // refused by one who came in between
	} {
		r.refused(!r.come)
		if r.heard(quorum.Unranked, 5, true); r.ahead != 2 {
			t.Errorf("%d ahead, want 2 as before", r.ahead)
		}
	}
}

func TestStandingBackIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead       int
		round       time.Duration
		least, most time.Duration
	}{
		{ahead: 0, round: time.Second},
		{ahead: 5, round: 0},
		{ahead: 5, round: time.Millisecond, least: 20 * time.Millisecond, most: 20 * time.Millisecond},
		{ahead: 5000, round: time.Millisecond, least: mostStandBack / 2, most: mostStandBack},
		{ahead: 1, round: time.Hour, least: mostStandBack / 2, most: mostStandBack},
		{ahead: math.MaxInt, round: math.MaxInt64, least: mostStandBack / 2, most: mostStandBack},
	} {
		r := rank{ahead: c.ahead}
		if got := r.standBack(c.round); got < c.least || got > c.most {
			t.Errorf("%d ahead, rounds of %v: %v, want %v to %v", c.ahead, c.round, got, c.least, c.most)
		}
	}
}
