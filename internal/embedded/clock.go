package embedded

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

const (
	// tickInterval is how often the clock moves while no command comes in, and countTicks how
	// many ticks pass between two counts of the keys.
	tickInterval = 10 * time.Millisecond
	countTicks   = 16
	// exactKeys is how many keys a node may have for its clock to be moved before each command.
	// With more, it moves in steps of stepPerKey for each: about a fifth of the time is then
	// spent on it.
	exactKeys  = 500
	stepPerKey = 2 * time.Microsecond
)

// A clock moves one server's time. miniredis lowers the TTLs of all keys when it finds at an
// access that its time has moved on. With its time left to run by itself that happens several
// times in each script, over all keys, sorted: milliseconds for a thousand keys. So it is moved
// from here: before each command, so that no key starts its life earlier than the command that
// set it was sent, but less often once there are so many keys that it would take all the time.
type clock struct {
	redis *miniredis.Miniredis
	// peers are the server's connections; the other peers are made by scripts for their calls.
	peers sync.Map

	mu      sync.Mutex    // guards what follows; taken before the server's own lock
	movedAt time.Time     // when the clock was moved last
	step    time.Duration // it is not moved again before

	quit, done chan struct{}
}

// newClock starts a goroutine that ends with stop.
func newClock(m *miniredis.Miniredis) *clock {
	c := &clock{redis: m, quit: make(chan struct{}), done: make(chan struct{})}
	m.SetTime(time.Now())
	m.ClockTTL(true)
	go c.run()
	return c
}

func (c *clock) run() {
	defer close(c.done)
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-c.quit:
			return
		}
		if n%countTicks == 0 {
			c.setStep(len(c.redis.DB(0).Keys()))
		}
		c.move()
	}
}

func (c *clock) stop() {
	close(c.quit)
	<-c.done
}

// hook moves the clock before each command of a client. It must not do so for a command that a
// script sends: the server's lock is held then, and time stands still in a script.
func (c *clock) hook(peer *server.Peer, _ string, _ ...string) bool {
	if c.isConnection(peer) {
		c.move()
	}
	return false
}

// isConnection knows a connection by its first command, when the server has not yet given it a
// context; a peer of a script comes with one.
func (c *clock) isConnection(peer *server.Peer) bool {
	if _, known := c.peers.Load(peer); known {
		return true
	}
	if peer.Ctx != nil {
		return false
	}
	c.peers.Store(peer, true)
	peer.OnDisconnect(func() { c.peers.Delete(peer) })
	return true
}

// setStep follows the number of keys.
func (c *clock) setStep(keys int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = 0
	if keys > exactKeys {
		c.step = time.Duration(keys) * stepPerKey
	}
}

// move brings the server's time up to now. The time carries its monotonic reading, by which TTLs
// are lowered: a step of the machine's wall clock moves TIME, but ends no key.
func (c *clock) move() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.movedAt) < c.step {
		return
	}
	c.movedAt = now
	c.redis.SetTime(now)
	c.redis.DB(0) // an access: here the TTLs of all keys are lowered
}
