package ticksim

import (
	"sync"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"
)

// gocron's Shutdown spins until goroutines have run that it has just started (executor.stop). They
// are queued at the processor on which it spins, and where every processor is busy with a world of
// its own none takes them over before the spinning one is preempted: after 10 ms, which for all the
// processes of a night was a third of its cost. So the other worlds stand still meanwhile. They do
// not notice: what waits here holds their time still.
var spinning struct {
	sync.Mutex // held by the process whose gocron spins
	in         atomic.Pointer[world]
}

// A spin is that of a process at its end; what gocron logs tells of it.
type spin struct {
	gocron.Logger // of what does not matter here
	world         *world
	began         bool
	ended         sync.Once // a process may die while it is shut down
}

// Debug is for gocron.Logger.
func (s *spin) Debug(what string, _ ...any) {
	if what == "gocron: stopping executor" {
		spinning.Lock()
		spinning.in.Store(s.world)
		s.began = true
	}
}

// end is called when Shutdown has returned.
func (s *spin) end() {
	s.ended.Do(func() {
		if s.began {
			spinning.in.Store(nil)
			spinning.Unlock()
		}
	})
}

// standsStill waits while another world spins.
func (w *world) standsStill() {
	if in := spinning.in.Load(); in != nil && in != w {
		spinning.Lock()
		defer spinning.Unlock()
	}
}
