package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/integration/internal/monotonic"
)

// A shift is what a member does from one order until doEnd.
type shift struct {
	member   *member
	order    order
	ctx      context.Context
	cancel   context.CancelFunc
	followed []chan struct{} // by taker
	takers   sync.WaitGroup
	held     held               // by hold; nil: nothing
	drop     context.CancelFunc // with held

	mu  sync.Mutex // guards what follows
	log watch
}

// longestShift is a deadline far away: redislock gives up after a TTL where there is none.
const longestShift = time.Minute

func (m *member) newShift(ctx context.Context, o order) *shift {
	s := &shift{member: m, order: o, followed: make([]chan struct{}, o.Takers)}
	s.ctx, s.cancel = context.WithTimeout(ctx, longestShift)
	for i := range s.followed {
		s.followed[i] = make(chan struct{}, 1)
	}
	return s
}

// start starts the takers from that one on; end ends them.
func (s *shift) start(first int, what func(taker int)) {
	for taker := first; taker < s.order.Takers; taker++ {
		s.takers.Go(func() { what(taker) })
	}
}

func (s *shift) client(taker int) client { return s.member.clients[taker%s.order.Clients] }

// takeTurns waits for the lock, frees it at once, and waits again, until the shift ends.
//
// That a hold is told before it is freed is a part of each turn, the same for all libraries: a text
// and a write to a pipe, microseconds to some tens of them. It is before the call of Unlock, so it
// is in the hand-offs per second, but not in the time from Unlock to the next holder. Told only
// after Unlock, whoever held before could ask again later by a round trip to the nodes.
func (s *shift) takeTurns(taker int) {
	for s.ctx.Err() == nil {
		l, err := s.client(taker).lock(s.ctx, s.order.Name)
		if err != nil {
			if s.ctx.Err() == nil {
				s.fail(err)
				pause(s.ctx, time.Millisecond)
			}
			continue
		}
		h := turn{Process: s.member.Process, Taker: taker, Got: monotonic.Now()}
		s.member.tell(answer{Held: &h})
		h.Freed = monotonic.Now()
		if err := freeLock(s.ctx, l); err != nil && s.ctx.Err() == nil {
			s.fail(err)
		}
		s.note(h)
		select {
		case <-s.followed[taker]:
		case <-s.ctx.Done():
		}
	}
}

// hold takes the lock for the first taker. Its context is not the waiters', and ends after they have
// ended: rueidislock frees a lock with the context that it was asked with.
func (s *shift) hold(ctx context.Context) (err error) {
	ctx, s.drop = context.WithTimeout(ctx, longestShift)
	s.held, err = s.client(0).lock(ctx, s.order.Name)
	return err
}

// errFree is of a lock that somebody got while another was to hold it.
var errFree = errors.New("got while another holds it")

// wait waits in vain: nobody gets it while another holds it.
func (s *shift) wait(taker int) {
	l, err := s.client(taker).lock(s.ctx, s.order.Name)
	if err == nil {
		err = errors.Join(errFree, freeLock(s.ctx, l))
	}
	if s.ctx.Err() == nil {
		s.fail(err)
	}
}

func (s *shift) note(h turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Holds = append(s.log.Holds, h)
}

func (s *shift) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Failed++
	if s.log.First == "" {
		s.log.First = textOf(err)
	}
}

// rest ends the takers.
func (s *shift) rest() {
	s.cancel()
	s.takers.Wait()
}

// end ends the takers, then frees what hold has taken.
func (s *shift) end() watch {
	s.rest()
	if s.drop != nil {
		defer s.drop()
	}
	if s.held != nil {
		if err := freeLock(s.ctx, s.held); err != nil {
			s.fail(err)
		}
	}
	return s.log
}
