package schedule

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

func TestGraceIsUntilTheNextInstantAndHasALimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, gap, want time.Duration // gap 0: no next instant
	}{
		{0, time.Second, time.Second},
		{0, 100 * time.Millisecond, 100 * time.Millisecond},
		{0, time.Hour, 30 * time.Second},
		{0, 0, 30 * time.Second},
		{time.Minute, time.Second, time.Minute},
		{time.Millisecond, time.Hour, time.Millisecond},
	} {
		next := time.Time{}
		if c.gap > 0 {
			next = moment(1).Add(c.gap)
		}
		if got := newDue(moment(1), next, c.asked).grace; got != c.want {
			t.Errorf("asked %v, gap %v: got %v, want %v", c.asked, c.gap, got, c.want)
		}
	}
}

func TestPatienceEndsBeforeTheNextInstant(t *testing.T) {
	t.Parallel()
	own := moment(10)
	for _, c := range []struct {
		grace, gap, late, want time.Duration
	}{
		{time.Second, time.Second, 0, 950 * time.Millisecond},
		{time.Second, time.Second, 900 * time.Millisecond, 50 * time.Millisecond},
		{time.Second, time.Second, 2 * time.Second, -1050 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond, 0, 75 * time.Millisecond},
		{30 * time.Second, time.Hour, 0, 30 * time.Second},
		{time.Hour, time.Minute, 0, time.Minute - mostMargin},
	} {
		d := newDue(own, own.Add(c.gap), c.grace)
		if got := d.patience(own.Add(c.late)); got != c.want {
			t.Errorf("grace %v, gap %v, late %v: got %v, want %v", c.grace, c.gap, c.late, got, c.want)
		}
	}
}

func TestClaimsLiveAQuarterOfGraceWithinBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ grace, nodeTimeout, maxTTL, want time.Duration }{
		{time.Second, 250 * time.Millisecond, 10 * time.Second, 250 * time.Millisecond},
		{30 * time.Second, 250 * time.Millisecond, 10 * time.Second, time.Second},
		{10 * time.Millisecond, 250 * time.Millisecond, 10 * time.Second, 20 * time.Millisecond},
		{30 * time.Second, 250 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
	} {
		if got := claimTTL(c.grace, c.nodeTimeout, c.maxTTL); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// T7 of the protocol review: a monthly job's marks outlive a week.
func TestMarksLiveTwoIntervals(t *testing.T) {
	t.Parallel()
	month := 31 * 24 * time.Hour
	if got := newDue(moment(1), moment(1).Add(month), 0).life(); got < 2*month {
		t.Errorf("monthly: got %v, want at least %v", got, 2*month)
	}
	if got := newDue(moment(1), moment(2), 0).life(); got != marksLife {
		t.Errorf("each tenth of a second: got %v, want %v", got, marksLife)
	}
	if got := newDue(moment(1), time.Time{}, 0).life(); got != marksLife {
		t.Errorf("one time: got %v, want %v", got, marksLife)
	}
}

func TestTooLateIsJudgedByAMajorityOfNodes(t *testing.T) {
	t.Parallel()
	d := newDue(moment(10), moment(20), 0)
	late, due := moment(20).UnixMilli()+1, moment(20).UnixMilli()
	for _, c := range []struct {
		name  string
		times []int64 // 0: no answer
		want  bool
	}{
		{"all in time", []int64{due, due, due}, false},
		{"one fast clock", []int64{late, due, due}, false},
		{"two of three", []int64{late, late, due}, true},
		{"two answers of five", []int64{late, late, 0, 0, 0}, false},
		{"three answers of five", []int64{late, late, late, 0, 0}, true},
	} {
		var reads []quorum.Read
		for _, at := range c.times {
			reads = append(reads, quorum.Read{Answered: at != 0, Time: at})
		}
		if got := d.tooLate(reads, quorum.Majority(len(reads))); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestIntervalsCountFromTheEpoch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at       int64 // ms
		interval time.Duration
		want     int64
	}{
		{1000, time.Second, 1000},
		{1999, time.Second, 1000},
		{0, time.Hour, 0},
		{-1, time.Second, -1000},
		{-1000, time.Second, -1000},
		{1_700_000_001_234, 5 * time.Second, 1_700_000_000_000},
		{1_700_000_001_234, 7 * time.Hour, 1_699_999_200_000 - 1_699_999_200_000%25_200_000},
	} {
		got := newDue(time.UnixMilli(c.at), time.Time{}, 0).inInterval(c.interval).ms()
		if got != c.want {
			t.Errorf("%d by %v: got %d, want %d", c.at, c.interval, got, c.want)
		}
	}
}
