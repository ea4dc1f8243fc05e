package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// at are instants, in tenths of a second after some moment; 0 stands for the zero time.
func at(tenths ...int) []time.Time {
	var times []time.Time
	for _, n := range tenths {
		switch n {
		case 0:
			times = append(times, time.Time{})
		default:
			times = append(times, moment(n))
		}
	}
	return times
}

func moment(tenths int) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(tenths) * 100 * time.Millisecond)
}

// listOf is a job's NextRuns: what is in its list, and after that every ten tenths.
func listOf(entries ...int) func(int) ([]time.Time, error) {
	return func(n int) ([]time.Time, error) {
		if len(entries) == 0 {
			return nil, nil
		}
		list := slices.Clone(entries)
		for len(list) < n {
			list = append(list, list[len(list)-1]+10)
		}
		return at(list[:n]...), nil
	}
}

// The rows are those of what gocron's list says inside Lock: see instant.go.
func TestFindInstant(t *testing.T) {
	t.Parallel()
	var skipped []int
	for i := range 100 {
		skipped = append(skipped, 10*(i+1))
	}
	for _, c := range []struct {
		name      string
		list      func(int) ([]time.Time, error)
		now       int
		due, next int // 0: none
	}{
		{"on time", listOf(10), 10, 10, 20},
		{"late", listOf(10), 14, 10, 20},
		{"late by two and a half intervals", listOf(10), 35, 30, 40},
		{"late by an hour of them", listOf(10), 10 * 3600, 10 * 3600, 10 * 3601},
		{"a run on request between ticks", listOf(20), 14, 0, 20},
		{"the entry before stayed behind", listOf(10, 20), 20, 20, 30},
		{"a hundred skipped ticks stayed behind", listOf(skipped...), 1000, 1000, 1010},
		{"entries out of order", listOf(30, 10, 20), 25, 20, 30},
		{"the list is empty", listOf(), 20, 0, 0},
		{"a one-time job", func(n int) ([]time.Time, error) {
			return at(10, 0, 10, 0, 10, 0, 10, 0)[:n], nil
		}, 11, 10, 0},
		{"a one-time job to come", func(n int) ([]time.Time, error) {
			return at(10, 0, 10, 0, 10, 0, 10, 0)[:n], nil
		}, 9, 0, 10},
		{"the schedule ends", func(int) ([]time.Time, error) { return at(10, 20), nil }, 25, 20, 0},
		{"a calendar that ends", func(int) ([]time.Time, error) {
			return append(at(10), never, never.Add(1)), nil
		}, 10, 10, 0},
		{"now is only zero times", func(n int) ([]time.Time, error) {
			return make([]time.Time, n), nil
		}, 10, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := findInstant(c.list, moment(c.now))
			if err != nil {
				t.Fatal(err)
			}
			if want := one(c.due); !got.due.Equal(want) {
				t.Errorf("due: got %v, want %v", got.due, want)
			}
			if want := one(c.next); !got.next.Equal(want) {
				t.Errorf("next: got %v, want %v", got.next, want)
			}
		})
	}
}

func one(tenths int) time.Time { return at(tenths)[0] }

func TestFindInstantAllowsForEarlyTimers(t *testing.T) {
	t.Parallel()
	for early, due := range map[time.Duration]bool{
		time.Millisecond: true, earlySlack: true, earlySlack + 1: false,
	} {
		got, err := findInstant(listOf(10), moment(10).Add(-early))
		if err != nil || got.due.IsZero() == due {
			t.Errorf("%v early: got %v, %v; want due: %v", early, got.due, err, due)
		}
	}
}

func TestFindInstantPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := findInstant(func(int) ([]time.Time, error) { return nil, broken }, moment(1))
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// A list that never reaches the present must not be read without an end.
func TestFindInstantEnds(t *testing.T) {
	t.Parallel()
	got, err := findInstant(listOf(10), moment(1_000_000_000))
	if err != nil || len(got.all) != mostInstants || got.due.IsZero() {
		t.Errorf("read %d instants, due %v, error %v", len(got.all), got.due, err)
	}
}
