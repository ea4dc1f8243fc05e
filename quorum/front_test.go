package quorum

import (
	"testing"
	"time"
)

func TestFront(t *testing.T) {
	t.Parallel()
	var f front
	f.choose(5, 3)
	if n := Set(f.lanes.Load()).Len(); n != 3 {
		t.Fatalf("%d lanes in front, want 3", n)
	}
	f.lanes.Store(0b00111)
	f.note(4, crowd)
	if f.load.Load() {
		t.Error("a flight behind makes load")
	}
	f.note(0, crowd)
	if !f.load.Load() {
		t.Error("a crowd in front is no load")
	}
	needed := func(pending Set) int {
		return len(f.needed(5, func(i int) *request {
			if pending.Has(i) {
				return &request{}
			}
			return nil
		}))
	}
	for pending, want := range map[Set]int{0: 0, 0b00100: 0, 0b01000: 1, 0b11000: 2, 0b11001: 0} {
		if got := needed(pending); got != want {
			t.Errorf("pending %b: %d messages are needed, want %d", pending, got, want)
		}
	}
	for range calmFlights {
		f.note(1, 0) // nothing on board says nothing
	}
	if !f.load.Load() {
		t.Error("empty flights end the load")
	}
	for range calmFlights {
		f.note(1, crowd-1)
	}
	if f.load.Load() || needed(0b11000) > 0 {
		t.Error("calm flights do not end the load")
	}
	f.swap(3, 4)
	f.swap(0, 1)
	if f.has(3) || !f.has(0) {
		t.Error("a lane has changed places with one that is not in front, or both are")
	}
	f.swap(3, 0)
	if !f.has(3) || f.has(0) {
		t.Error("a lane in front has not given its place")
	}
}

// A message behind leaves when half of its time is over, one about a tick at once.
func TestHurry(t *testing.T) {
	t.Parallel()
	e := New(nil, Settings{NodeTimeout: time.Second})
	for what, tc := range map[string]struct {
		command *Command
		urgent  bool
		least   time.Duration // of the planned time
	}{
		"a release": {command: e.releaseMessage(new(releaseParcel), "k", "t", 0), least: 5 * time.Second},
		"fetched":   {command: e.releaseMessage(new(releaseParcel), "k", "t", 0), urgent: true},
		"a commit":  {command: e.commitMessage(Commit{Name: "k"})},
	} {
		l := newLane(e, nil, 0, nil)
		l.closed = true // sets no timer
		begin := time.Now()
		l.departs = begin.Add(time.Hour)
		l.hurry(&request{command: tc.command, urgent: tc.urgent, deadline: e.moment(begin.Add(20 * time.Second))})
		if tc.least == 0 != l.departs.IsZero() {
			t.Errorf("%s: departs at %v", what, l.departs)
		}
		if got := l.departs.Sub(begin); tc.least > 0 && (got < tc.least || got > 20*time.Second) {
			t.Errorf("%s: departs after %v, want half of what is left of 20s", what, got)
		}
	}
}

func TestAssumeLoad(t *testing.T) {
	t.Parallel()
	e := New(nil, Settings{NodeTimeout: time.Second})
	e.AssumeLoad()
	e.front.lanes.Store(1)
	for range 2 * calmFlights {
		e.front.note(0, 1)
	}
	if !e.front.load.Load() {
		t.Error("load that is assumed has ended")
	}
}
