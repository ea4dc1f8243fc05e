package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"
)

// A member is a process of a crew: this program once more, with clients of one library. It does
// what it is told on its standard input, tells on its standard output, each in JSON, and ends when
// its input does: it outlives nobody.

// memberVariable makes a process a member; its value is a task.
const memberVariable = "QUORUMLOCK_BENCH_MEMBER"

// A task is what a member is for.
type task struct {
	Peer    string
	Process int // its number in the crew
	Addrs   []string
	Clients int
}

// An order is what a member is told to do.
type order struct {
	Do              string
	Name            string // of the lock
	Clients, Takers int    // the member's share
	Taker           int    // who is meant
}

const (
	doTurns  = "take turns"
	doFollow = "go on" // the taker was followed by another, and may ask again
	doHold   = "hold"  // by the first taker, until the end; answered once it holds
	doWait   = "wait"  // all other takers
	doUse    = "use"   // answered with what the process has used of the processors
	doRest   = "rest"  // answered once nobody takes or waits any more
	doEnd    = "end"   // answered with the log, once nobody holds either
)

// An answer is what a member tells: news of a hold as soon as somebody holds, and what it is asked
// for. It tells once, unasked, that its clients are open.
type answer struct {
	Held *turn         `json:",omitempty"`
	Log  *watch        `json:",omitempty"`
	Used time.Duration `json:",omitempty"`
	Err  string        `json:",omitempty"` // the run cannot go on
}

// A watch is what became of an order.
type watch struct {
	Holds  []turn
	Failed int64
	First  string // of the failures
}

// isMember reports whether this process is a member, and runs it if so.
func isMember() (is bool, err error) {
	text := os.Getenv(memberVariable)
	if text == "" {
		return false, nil
	}
	signal.Ignore(os.Interrupt) // a terminal sends it to all: the parent ends this one
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return true, err
	}
	return true, runMember(t, os.Stdin, os.Stdout)
}

// A member of a crew.
type member struct {
	task
	peer    *peer
	clients []client
	shift   *shift // under way; nil: none

	mu  sync.Mutex // guards what follows
	out *json.Encoder
}

// runMember serves until in ends.
func runMember(t task, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	orders := make(chan order)
	go func() { // ends with in, and cuts short what is under way then
		defer cancel()
		defer close(orders)
		told := json.NewDecoder(in)
		for {
			var o order
			if told.Decode(&o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	m := &member{task: t, out: json.NewEncoder(out)}
	defer func() {
		for _, c := range m.clients {
			err = errors.Join(err, c.close())
		}
	}()
	if err := m.open(ctx); err != nil {
		m.tell(answer{Err: err.Error()})
		return nil // it is told
	}
	m.tell(answer{})
	for o := range orders {
		m.do(ctx, o)
	}
	m.end()
	return nil
}

// open opens the clients, and lets each take a lock so that it knows the nodes.
func (m *member) open(ctx context.Context) (err error) {
	if m.peer, err = peerNamed(m.Peer); err != nil {
		return err
	}
	for i := range m.Clients {
		c, err := m.peer.open(ctx, m.peer.addrs(m.Addrs), nil)
		if err != nil {
			return err
		}
		m.clients = append(m.clients, c)
		if err := pair(ctx, c, m.peer.key("warm up", m.Process, i)); err != nil {
			return err
		}
	}
	return nil
}

// tell does not fail: if nobody reads, the input ends, too.
func (m *member) tell(a answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.out.Encode(a)
}

// do does what an order says, and does not wait for what goes on until doEnd.
func (m *member) do(ctx context.Context, o order) {
	switch o.Do {
	case doTurns:
		m.shift = m.newShift(ctx, o)
		m.shift.start(0, m.shift.takeTurns)
	case doHold:
		m.shift = m.newShift(ctx, o)
		m.tell(answer{Err: textOf(m.shift.hold(ctx))})
	case doWait:
		first := 1
		if m.shift == nil {
			m.shift, first = m.newShift(ctx, o), 0
		}
		m.shift.start(first, m.shift.wait)
	case doFollow:
		// A taker that was told of nothing yet has room for it. Without a shift it is too late.
		if m.shift != nil {
			m.shift.followed[o.Taker] <- struct{}{}
		}
	case doUse:
		m.tell(answer{Used: cpuTime()})
	case doRest:
		if m.shift != nil {
			m.shift.rest()
		}
		m.tell(answer{})
	case doEnd:
		log := m.end()
		m.tell(answer{Log: &log})
	default:
		m.tell(answer{Err: fmt.Sprintf("no such order: %q", o.Do)})
	}
}

// end ends what is under way, if anything is.
func (m *member) end() (log watch) {
	if m.shift != nil {
		log = m.shift.end()
		m.shift = nil
	}
	return log
}

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
		h := turn{Process: s.member.Process, Taker: taker, Got: now()}
		s.member.tell(answer{Held: &h})
		h.Freed = now()
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

// freeLock frees also when the time is up, in bounded time.
func freeLock(ctx context.Context, l held) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return l.Unlock(ctx)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
