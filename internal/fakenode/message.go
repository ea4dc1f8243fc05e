package fakenode

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A message is a batch on its way, apart from its sender: it keeps nothing of the batch that the
// sender may change. One that has do instead of commands is a listener's.
type message struct {
	link     *Link
	calls    []call
	wantInfo bool
	answers  chan *answer // room for two, the second for a repetition's
	repeated bool
	do       func()
}

// An answer is what a message was answered.
type answer struct {
	replies []reply
	info    reply
	err     error     // the connection's
	at      time.Time // when it arrives
}

type reply struct {
	text string
	err  error
}

func newMessage(l *Link, batch *quorum.Batch) *message {
	m := &message{link: l, wantInfo: batch.WantReplication, answers: make(chan *answer, 2)}
	for i := range batch.Calls {
		identity := ""
		if batch.Calls[i].Guarded {
			identity = batch.Identity
		}
		m.calls = append(m.calls, newCall(batch.Calls[i].Command, identity))
	}
	return m
}

// fill gives the answer to the batch it belongs to.
func (a *answer) fill(batch *quorum.Batch) error {
	for i, r := range a.replies {
		batch.Calls[i].Reply, batch.Calls[i].Err = r.text, r.err
	}
	if a.err == nil && batch.WantReplication {
		batch.Replication, batch.ReplicationErr = a.info.text, a.info.err
	}
	return a.err
}

// answer brings the reply to the sender, or loses it.
func (m *message) answer(a *answer) {
	if m.link.losesReply() {
		return
	}
	if left := m.link.answered(len(a.replies)); left < len(a.replies) {
		a.replies, a.err = slices.Clip(a.replies[:left]), errReset
	}
	m.reply(a)
}

// reply sets a reply on its way. The first that arrives is the sender's.
func (m *message) reply(a *answer) {
	a.at = m.link.node.toil(len(a.replies)).Add(m.link.replyTakes())
	m.answers <- a
}

// toil is when so many commands more are done with.
func (n *Node) toil(commands int) time.Time {
	now, effort := time.Now(), n.faults.takesEffort()
	n.mu.Lock()
	defer n.mu.Unlock()
	if effort == 0 || n.busyUntil.Before(now) {
		n.busyUntil = now
	}
	n.busyUntil = n.busyUntil.Add(time.Duration(commands) * effort)
	return n.busyUntil
}

// arrive puts the message into the node's inbox and sees to it that it is executed.
func (n *Node) arrive(m *message) {
	if m.link.isDown() {
		if m.do == nil {
			m.reply(&answer{err: errReset})
		}
		return
	}
	n.mu.Lock()
	n.inbox = append(n.inbox, m)
	n.mu.Unlock()
	n.work()
}

// work executes what is in the inbox, in the order of arrival, unless somebody does already or the
// node is paused.
func (n *Node) work() {
	n.mu.Lock()
	if n.working {
		n.mu.Unlock()
		return
	}
	n.working = true
	for !n.paused && len(n.inbox) > 0 {
		m := n.inbox[0]
		n.inbox = n.inbox[1:]
		n.mu.Unlock()
		n.execute(m)
		n.mu.Lock()
	}
	n.working = false
	n.mu.Unlock()
}

// execute runs a message from its first command to its last; only the one who works gets here.
func (n *Node) execute(m *message) {
	if m.do != nil {
		m.do()
		return
	}
	n.mu.Lock()
	life := n.lives
	n.mu.Unlock()
	a := &answer{}
	for _, c := range m.calls {
		n.before(c)
		r, alive := n.call(c, life)
		if !alive {
			m.answer(&answer{err: errReset})
			return
		}
		a.replies = append(a.replies, r)
		n.after(c, r)
	}
	if !n.finish(m, a, life) {
		m.answer(&answer{err: errReset})
		return
	}
	if after, again := m.link.repeats(); again && !m.repeated {
		twin := *m
		twin.repeated = true // once: else a way that always repeats never comes to rest
		time.AfterFunc(after, func() { n.arrive(&twin) })
	}
	m.answer(a)
}

// call runs one command, unless the node was restarted since the message's first one.
func (n *Node) call(c call, life int) (reply, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lives != life {
		return reply{}, false
	}
	r, published := n.run(c)
	for _, p := range published {
		n.publish(p)
	}
	return r, true
}

// finish answers what comes after the commands: INFO, or a PING if there is nothing at all.
func (n *Node) finish(m *message, a *answer, life int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.lives != life:
		return false
	case m.wantInfo:
		n.counts["info"]++
		a.info.text, a.info.err = n.info()
	case len(m.calls) == 0:
		n.counts["ping"]++
		a.err = n.refusals.of("ping")
	}
	return true
}
