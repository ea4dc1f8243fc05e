package fakenode

import (
	"maps"
	"slices"

	"github.com/quorumlock/quorumlock/quorum"
)

// A listener is a subscription connection. What it sends and what it hears keep their order, as on
// one connection of TCP, so delays stretch them and losses break the connection or, with
// LosePublished and Partition, go unnoticed.
type listener struct {
	link  *Link
	heard func(quorum.Heard)
	up    pipe // to the node
	down  pipe // to heard

	// Guarded by link.node.mu.
	wanted map[string]bool // the client's side: what to subscribe again after a break
	live   map[string]bool // the node's side
	broken bool
	epoch  int // breaks, so that nothing of an old connection reaches a new one
	ended  bool
}

// Listen opens a subscription without channels. It is told from one goroutine at a time.
func (l *Link) Listen(heard func(quorum.Heard)) quorum.Listener {
	s := &listener{link: l, heard: heard,
		wanted: make(map[string]bool), live: make(map[string]bool)}
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	s.broken = l.isDown()
	if l.isClosed() {
		s.end()
		return s
	}
	n.listeners[s] = struct{}{}
	return s
}

// BreakListeners breaks the subscription connections of all links: each hears Broken, and then
// Subscribed for every channel once it could subscribe again.
func (n *Node) BreakListeners() { n.wayChanged(nil)() }

// Listeners says how many subscriptions of which channels the node has at the moment.
func (n *Node) Listeners() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	channels := make(map[string]int)
	for l := range n.listeners {
		for channel := range l.live {
			channels[channel]++
		}
	}
	return channels
}

// wayChanged makes the function that is called when a way, or with nil every way, went dead or
// came back.
func (n *Node) wayChanged(l *Link) func() {
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for s := range n.listeners {
			if l == nil || s.link == l {
				s.reconnect()
			}
		}
	}
}

// Subscribe asks for a channel.
func (s *listener) Subscribe(channel string) {
	s.change(channel, func() {
		s.wanted[channel] = true
		s.send(channel, true)
	})
}

// Unsubscribe asks for no more of it.
func (s *listener) Unsubscribe(channel string) {
	s.change(channel, func() {
		delete(s.wanted, channel)
		s.send(channel, false)
	})
}

// Count asks how many listen to the channel.
func (s *listener) Count(channel string) {
	s.change(channel, func() {
		if s.broken || s.link.isParted() {
			return
		}
		m := &message{link: s.link, do: func() { s.count(channel) }}
		s.up.put(s.link.requestTakes(), func() { s.link.node.arrive(m) })
	})
}

// Close ends the listener: nothing is heard any more, but for what is being told right now.
func (s *listener) Close() {
	s.link.node.mu.Lock()
	defer s.link.node.mu.Unlock()
	s.end()
}

func (s *listener) change(channel string, change func()) {
	s.link.node.mu.Lock()
	defer s.link.node.mu.Unlock()
	if !s.ended {
		change()
	}
}

// The rest is called with link.node.mu held, but for what is put into pipes.

func (s *listener) end() {
	s.ended = true
	delete(s.link.node.listeners, s)
	s.up.end()
	s.down.end()
}

// reconnect breaks the connection, if there is one, and makes another, if the way is up.
func (s *listener) reconnect() {
	if !s.broken {
		s.broken = true
		s.epoch++
		s.up.clear()
		s.down.clear()
		clear(s.live)
		s.down.put(0, func() { s.heard(quorum.Heard{Kind: quorum.Broken}) })
	}
	if s.link.isDown() {
		return
	}
	s.broken = false
	for _, channel := range slices.Sorted(maps.Keys(s.wanted)) {
		s.send(channel, true)
	}
}

// send brings a change to the node, which answers a subscription when it executes it.
func (s *listener) send(channel string, subscribe bool) {
	if s.broken || s.link.isParted() {
		return
	}
	epoch := s.epoch
	m := &message{link: s.link, do: func() { s.subscribed(channel, subscribe, epoch) }}
	s.up.put(s.link.requestTakes(), func() { s.link.node.arrive(m) })
}

// subscribed is executed by the node.
func (s *listener) subscribed(channel string, subscribe bool, epoch int) {
	s.link.node.mu.Lock()
	defer s.link.node.mu.Unlock()
	switch {
	case s.ended || s.epoch != epoch:
	case subscribe:
		s.live[channel] = true
		s.tell(quorum.Heard{Kind: quorum.Subscribed, Channel: channel})
	default:
		delete(s.live, channel)
	}
}

// count is executed by the node.
func (s *listener) count(channel string) {
	s.link.node.mu.Lock()
	defer s.link.node.mu.Unlock()
	count := 0
	for other := range s.link.node.listeners {
		if other.live[channel] {
			count++
		}
	}
	if !s.ended {
		s.tell(quorum.Heard{Kind: quorum.Counted, Channel: channel, Count: count})
	}
}

func (s *listener) tell(h quorum.Heard) {
	if !s.link.isParted() {
		s.down.put(s.link.replyTakes(), func() { s.heard(h) })
	}
}

// publish tells everybody who listens.
func (n *Node) publish(p publication) {
	for s := range n.listeners {
		if s.live[p.channel] && !s.link.losesPublished() {
			s.tell(quorum.Heard{Kind: quorum.Published, Channel: p.channel, Payload: p.payload})
		}
	}
}
