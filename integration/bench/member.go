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
