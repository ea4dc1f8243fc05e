package quorum

import "time"

// crewStays is how long a goroutine of the crew stays for another flight.
const crewStays = 10 * time.Millisecond

// A crew is the goroutines that carry flights. They stay for a moment after their last one: what
// go-redis calls is deep, and to grow the stack of a new goroutine into it each time was a sixth of
// the processor time of a single caller.
type crew struct {
	rested chan func() // to one that has nothing to carry
	over   <-chan struct{}
}

func newCrew(over <-chan struct{}) crew { return crew{rested: make(chan func()), over: over} }

// carry lets one of the crew call fly, also when all is over. It does not block.
func (c *crew) carry(fly func()) {
	select {
	case c.rested <- fly:
	default:
		go c.work(fly)
	}
}

func (c *crew) work(fly func()) {
	stays := time.NewTimer(crewStays)
	defer stays.Stop()
	for {
		fly()
		stays.Reset(crewStays)
		select {
		case fly = <-c.rested:
		case <-stays.C:
			return
		case <-c.over:
			return
		}
	}
}
