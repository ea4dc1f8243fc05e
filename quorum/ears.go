package quorum

import (
	"math/rand/v2"
	"sync"
	"time"
)

// earGrace is how long the first message about a release waits for those of the other nodes. To
// ask when only one node is free would be too early, to insist on all too late.
const earGrace = 3 * time.Millisecond

// linger is how long a subscription stays after its ear was closed: who waits for a lock that goes
// round waits again in a moment, and to subscribe anew costs more than the lock.
const linger = 2 * time.Second

// An Ear hears when a lock is freed.
type Ear struct {
	ears    *ears
	channel string
	ready   chan struct{}
	freed   chan struct{}

	// Guarded by ears.mu.
	listens Set // nodes whose subscription is confirmed
	known   Set // nodes whose subscription ever was
	holder  releases
	other   releases // the last one that was not the holder's
	grace   *time.Timer
	closed  bool
	leaving *time.Timer // once closed: ends the subscription, unless somebody listens again
	crowd   int         // how many listened when it was counted; 0: not known
	had     bool        // see Keep
	told    string      // the owner token whose release Freed last told of; "": not known
	counted time.Time
}

// releases are what nodes told of the release of one owner token.
type releases struct {
	token string
	by    Set
}

// ears keeps the subscriptions of an engine: one connection to each node while anybody listens and
// for a moment after that, none otherwise.
type ears struct {
	engine *Engine

	mu        sync.Mutex // guards all below
	closed    bool
	open      map[string]*Ear // by channel
	listeners []Listener
	opened    int // how often there were any: what those before say counts for nothing
}

// Listen begins to listen for releases of a name. One Ear per name may be open at a time. It does
// not block: Ready tells when messages are sure to arrive.
func (e *Engine) Listen(name string) *Ear {
	ear := &Ear{ears: &e.ears, channel: e.channel(name),
		ready: make(chan struct{}), freed: make(chan struct{}, 1)}
	e.ears.add(ear)
	return ear
}

// Overhear is Listen where a majority of the nodes tells already, because an Ear for the name was
// open a moment ago; elsewhere it returns nil. So what is freed from now on is heard.
func (e *Engine) Overhear(name string) *Ear {
	s := &e.ears
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) == 0 {
		return nil
	}
	ear := s.open[e.channel(name)]
	if ear == nil || !ear.closed || ear.listens.Len() < e.Quorum() {
		return nil
	}
	ear.leaving.Stop()
	ear.closed, ear.holder, ear.other = false, releases{}, releases{}
	select { // of what was freed before now
	case <-ear.freed:
	default:
	}
	for i := range s.listeners {
		if ear.listens.Has(i) && time.Since(ear.counted) > linger {
			s.count(ear, i)
		}
	}
	return ear
}

// count lets node i tell how many listen. Called with s.mu held.
func (s *ears) count(ear *Ear, i int) {
	ear.counted = time.Now()
	s.listeners[i].Count(ear.channel)
}

// Ready is closed when a majority of the nodes has confirmed the subscription. What was freed
// before that may have been missed.
func (ear *Ear) Ready() <-chan struct{} { return ear.ready }

// Freed receives when it is worth asking again: enough nodes told of a release, or a broken
// subscription is back and may have missed one.
func (ear *Ear) Freed() <-chan struct{} { return ear.freed }

// Crowd is how many listen for releases of the name, this ear included, as a node last counted them;
// 0 where that is not known.
func (ear *Ear) Crowd() int {
	ear.ears.mu.Lock()
	defer ear.ears.mu.Unlock()
	return ear.crowd
}

// Keep says that this process got the lock while it listened; Had tells the next ear of the name, for
// as long as the subscription stays.
func (ear *Ear) Keep() {
	ear.ears.mu.Lock()
	defer ear.ears.mu.Unlock()
	ear.had = true
}

// Had reports whether the process has had the lock while it listened.
func (ear *Ear) Had() bool {
	ear.ears.mu.Lock()
	defer ear.ears.mu.Unlock()
	return ear.had
}

// Told is the owner token whose release Freed told of last; "" where it is not known.
func (ear *Ear) Told() string {
	ear.ears.mu.Lock()
	defer ear.ears.mu.Unlock()
	return ear.told
}

// countEvery is how far apart counts are that nobody began to listen for.
const countEvery = 100 * time.Millisecond

// Recount asks a node anew how many listen, if it was not asked just now. It does not block: Crowd
// tells later.
func (ear *Ear) Recount() {
	s := ear.ears
	s.mu.Lock()
	defer s.mu.Unlock()
	if ear.closed || s.closed || time.Since(ear.counted) < countEvery {
		return
	}
	for _, i := range rand.Perm(len(s.listeners)) { // any: one may be silent
		if ear.listens.Has(i) {
			s.count(ear, i)
			return
		}
	}
}

// Await says by which owner token the lock is held at present. Of its release, what one node tells
// is enough to be woken by. Of any other token's it takes a majority: contenders that were refused
// give back what they got from the other nodes, and would wake each other, and themselves, without
// end.
func (ear *Ear) Await(holder string) {
	ear.ears.mu.Lock()
	defer ear.ears.mu.Unlock()
	if ear.closed || ear.holder.token == holder {
		return
	}
	was := ear.holder
	ear.holder = releases{token: holder}
	if ear.other.token == holder {
		ear.holder, ear.other = ear.other, was
	}
	ear.startGrace()
}

// Close ends listening.
func (ear *Ear) Close() { ear.ears.remove(ear) }

func (s *ears) add(ear *Ear) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.listeners == nil {
		s.open = make(map[string]*Ear)
		s.listeners = make([]Listener, len(s.engine.nodes))
		s.opened++
		opened := s.opened
		for i, node := range s.engine.nodes {
			s.listeners[i] = node.Listen(func(h Heard) { s.hear(opened, i, h) })
		}
	}
	s.open[ear.channel] = ear
	for _, l := range s.listeners {
		l.Subscribe(ear.channel)
	}
}

func (s *ears) remove(ear *Ear) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ear.closed {
		return
	}
	ear.closed = true
	if ear.grace != nil {
		ear.grace.Stop()
	}
	if s.open[ear.channel] == ear && !s.closed {
		ear.leaving = time.AfterFunc(linger, func() { s.leave(ear) })
	}
}

// leave ends the ear's subscription, unless somebody listens again. With the last one the
// connections end.
func (s *ears) leave(ear *Ear) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[ear.channel] != ear || !ear.closed || s.closed {
		return
	}
	delete(s.open, ear.channel)
	if len(s.open) == 0 {
		s.closeListeners()
		return
	}
	for _, l := range s.listeners {
		l.Unsubscribe(ear.channel)
	}
}

func (s *ears) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, ear := range s.open {
		if ear.leaving != nil {
			ear.leaving.Stop()
		}
	}
	s.closeListeners()
}

func (s *ears) closeListeners() {
	for _, l := range s.listeners {
		l.Close()
	}
	s.listeners = nil
}

// hear takes in what node i told. A message may have been on its way when its listener was closed.
func (s *ears) hear(opened, i int, h Heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == nil || opened != s.opened {
		return
	}
	switch h.Kind {
	case Broken:
		for _, ear := range s.open {
			ear.listens &^= 1 << i
		}
	case Subscribed:
		if ear := s.open[h.Channel]; ear != nil && ear.subscribed(i, s.engine.Quorum()) {
			s.count(ear, i)
		}
	case Counted:
		if ear := s.open[h.Channel]; ear != nil {
			ear.crowd = h.Count
		}
	case Published:
		if ear := s.open[h.Channel]; ear != nil {
			ear.published(i, h.Payload, s.engine.Quorum())
		}
	}
}

// subscribed reports whether the ear is ready by it. Called with ears.mu held.
func (ear *Ear) subscribed(i, quorum int) (isReady bool) {
	if ear.known.Has(i) {
		ear.signal("") // back after a break, in which a message may have been missed
	}
	ear.known |= 1 << i
	ear.listens |= 1 << i
	if ear.listens.Len() == quorum {
		select {
		case <-ear.ready:
		default:
			close(ear.ready)
			return true
		}
	}
	return false
}

// published is called with ears.mu held.
func (ear *Ear) published(i int, token string, quorum int) {
	told := &ear.holder
	if token != told.token {
		if told = &ear.other; token != told.token {
			*told = releases{token: token}
		}
	}
	told.by |= 1 << i
	switch {
	case told.by.Len() == quorum:
		ear.signal(token)
	case told == &ear.holder && told.by.Len() == 1:
		ear.startGrace()
	}
}

// startGrace waits for more nodes to tell of the holder's release, if one has.
// Called with ears.mu held.
func (ear *Ear) startGrace() {
	if ear.grace != nil {
		ear.grace.Stop()
	}
	if ear.holder.by != 0 && !ear.closed {
		ear.grace = time.AfterFunc(earGrace, ear.graceOver)
	}
}

func (ear *Ear) graceOver() {
	ear.ears.mu.Lock()
	defer ear.ears.mu.Unlock()
	if n := ear.holder.by.Len(); !ear.closed && n > 0 && n < ear.ears.engine.Quorum() {
		ear.signal(ear.holder.token)
	}
}

// signal is called with ears.mu held.
func (ear *Ear) signal(token string) {
	ear.told = token
	select {
	case ear.freed <- struct{}{}:
	default:
	}
}
