package quorum

import (
	"testing"
	"time"
)

// A node that answered once after seconds, to a client that ignores deadlines, does not keep flights
// apart for longer than one that has lost a reply.
func TestSpacingIsBoundByPatience(t *testing.T) {
	t.Parallel()
	l := &lane{timeout: 250 * time.Millisecond, closed: true, // sets no timer
		pace: pace{least: 10 * time.Second, before: 10 * time.Second, mean: 20 * time.Millisecond}}
	patience := l.pace.patience(l.timeout)
	if l.pace.flights() < 2 || l.pace.spacing() <= patience {
		t.Fatalf("%d flights %v apart, want several, further apart than %v", l.pace.flights(),
			l.pace.spacing(), patience)
	}
	l.flights = []*flight{{took: time.Now().Add(-patience)}}
	if !l.mayLeave() {
		t.Errorf("%v after the last flight left none may, and its reply may be lost", patience)
	}
}
