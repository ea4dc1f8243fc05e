package ticksim

import (
	"math/rand/v2"
	"time"
)

// A slot is a replica: one process after another.
type slot struct {
	*world
	index int
	lives int
	now   *process
	rand  *rand.Rand
	died  chan *process // capacity 1: it died between win and commit
}

func newSlot(w *world, index int) *slot {
	s := &slot{world: w, index: index, died: make(chan *process, 1),
		rand: w.plan.rand(uint64(slotStream + index))}
	s.start()
	return s
}

func (s *slot) start() {
	s.lives++
	s.now = newProcess(s, s.lives)
}

// live lets something happen to the replica in every hour of the night.
func (s *slot) live() {
	for hour := s.from; ; hour = hour.Add(time.Hour) {
		if !s.wait(time.Until(hour.Add(between(s.rand, time.Minute, 55*time.Minute)))) {
			return
		}
		s.suffer()
		if !s.wait(time.Until(hour.Add(time.Hour))) {
			return
		}
	}
}

// wait waits for d, and starts the replica anew when it dies meanwhile. It reports whether the
// night goes on; the replica is well then.
func (s *slot) wait(d time.Duration) bool {
	until := time.Now().Add(d)
	for {
		timer := time.NewTimer(time.Until(until))
		select {
		case <-timer.C:
			return true
		case <-s.over:
			timer.Stop()
			if s.now.dead.Load() {
				s.start()
			}
			return false
		case p := <-s.died:
			timer.Stop()
			if p == s.now {
				s.pause(between(s.rand, 100*time.Millisecond, time.Minute))
				s.start()
			}
		}
	}
}

func (s *slot) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.over:
	}
}

// suffer is what happens to the replica once an hour.
func (s *slot) suffer() {
	switch s.rand.IntN(3) {
	case 0:
		s.counts.crashes.Add(1)
		s.now.die("died")
		s.pause(between(s.rand, time.Second, 3*time.Minute))
		s.start()
	case 1:
		s.counts.freezes.Add(1)
		s.now.freeze(between(s.rand, 100*time.Millisecond, 40*time.Second))
	case 2:
		s.counts.redeploys.Add(1)
		s.now.redeploy()
		s.pause(between(s.rand, 0, 20*time.Second))
		s.start()
	}
	s.now.clock.offset.Store(int64(between(s.rand, -mostSkew, mostSkew)))
}
