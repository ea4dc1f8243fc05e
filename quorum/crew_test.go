package quorum

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheCrewStaysForAMoment: who has carried a flight carries the next one, if it comes soon, and is
// gone otherwise. At the end of the bubble nobody may be left.
func TestTheCrewStaysForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		c := newCrew(over)
		flight := func(takes time.Duration) <-chan string {
			by := make(chan string, 1)
			c.carry(func() {
				time.Sleep(takes)
				by <- goroutine()
			})
			return by
		}
		first := <-flight(0)
		synctest.Wait()
		time.Sleep(crewStays - 1)
		if again := <-flight(0); again != first {
			t.Errorf("%s carried the first flight, %s one that came soon", first, again)
		}
		synctest.Wait()
		one, two := flight(time.Second), flight(time.Second)
		a, b := <-one, <-two
		if a == b || a != first {
			t.Errorf("two flights at once are carried by %s and %s, want %s and another", a, b, first)
		}
		time.Sleep(crewStays + 1)
		if late := <-flight(0); late == a || late == b {
			t.Errorf("%s is there still", late)
		}
		synctest.Wait()
		close(over)
		synctest.Wait()
		<-flight(0) // what is left to free is sent then
	})
}

// goroutine names the caller's.
func goroutine() string {
	text := make([]byte, 64)
	name, _, _ := strings.Cut(string(text[:runtime.Stack(text, false)]), " [")
	return name
}
