package sim

import (
	"fmt"
	"sync/atomic"
)

// Counts say what schedules have seen: a property that held where nothing happened is worth
// nothing. They may be added to concurrently.
type Counts struct {
	Schedules, Events atomic.Int64

	Wins, Held, NoQuorum, Ended, Lost atomic.Int64 // what callers were told
	Extends, Unlocks                  atomic.Int64 // that succeeded

	Splits, Yields, Plants, Raises, Late, Repeats atomic.Int64 // of the engines

	Forgets, Freezes, Cuts, Storms atomic.Int64 // of the weather
}

func (c *Counts) String() string {
	return fmt.Sprintf("schedules=%d events=%d | wins=%d held=%d no-quorum=%d ended=%d losses=%d"+
		" extends=%d unlocks=%d | splits=%d yields=%d plants=%d raises=%d late=%d repeats=%d |"+
		" forgets=%d freezes=%d cuts=%d storms=%d",
		c.Schedules.Load(), c.Events.Load(),
		c.Wins.Load(), c.Held.Load(), c.NoQuorum.Load(), c.Ended.Load(), c.Lost.Load(),
		c.Extends.Load(), c.Unlocks.Load(),
		c.Splits.Load(), c.Yields.Load(), c.Plants.Load(), c.Raises.Load(), c.Late.Load(),
		c.Repeats.Load(),
		c.Forgets.Load(), c.Freezes.Load(), c.Cuts.Load(), c.Storms.Load())
}
