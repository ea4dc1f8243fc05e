package redlocktest

import (
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// A Node is one node of a Quorum. Its methods may be called concurrently and at any time. What
// they change holds for messages that set out afterwards.
type Node struct {
	quorum *Quorum
	fake   *fakenode.Node

	mu    sync.Mutex // guards fresh
	fresh bool       // never started again
}

// Name is the address that errors and Observers show: "node-0:6379".
func (n *Node) Name() string { return n.fake.Name() }

// Stop kills the process: connections are refused from now on, and what was on its way is lost.
func (n *Node) Stop() { n.fake.Faults().Down(true) }

// Start starts the process again, if it was stopped, with all it knew: the keys whose time was
// not over meanwhile. Like a real one it cannot prove that it forgot nothing, so it gives no vote
// for MaxTTL, unless Config.DisableRestartGuard is set. Locks held on it can be renewed at once.
func (n *Node) Start() { n.start(n.fake.Restart) }

// StartEmpty starts the process again, if it was stopped, without its memory. It gives no vote for
// MaxTTL, so that no lock which it forgot can still be held when it does.
func (n *Node) StartEmpty() { n.start(n.fake.Forget) }

func (n *Node) start(process func()) {
	n.mu.Lock()
	n.fresh = false
	n.mu.Unlock()
	n.fake.Faults().Down(true) // a restart of a node that runs breaks its connections
	process()
	n.fake.Faults().Down(false)
}

// Delay makes every answer take d from now on, half of it on the way to the node and half back.
// Zero or less makes them instant again.
func (n *Node) Delay(d time.Duration) {
	n.fake.Faults().DelayRequests(fakenode.Fixed(d / 2))
	n.fake.Faults().DelayReplies(fakenode.Fixed(d - d/2))
}

// Cut cuts the node off: from these clients, or from all if none is named. Messages and answers
// vanish without a word, as in a network that swallows packets.
func (n *Node) Cut(clients ...*redlock.Client) { n.part(true, clients) }

// Heal ends a Cut: for these clients, or with none named every cut of this node.
func (n *Node) Heal(clients ...*redlock.Client) {
	if len(clients) == 0 {
		for _, p := range n.quorum.processes() {
			p.part(n, false)
		}
	}
	n.part(false, clients)
}

func (n *Node) part(parted bool, clients []*redlock.Client) {
	if len(clients) == 0 {
		n.fake.Faults().Partition(parted)
	}
	for _, c := range clients {
		if p := n.quorum.process(c); p != nil {
			p.part(n, parted)
		}
	}
}

// LoseReplies loses the node's next replies, to whomever; what was asked for is done all the
// same. Zero or less loses no more.
func (n *Node) LoseReplies(next int) { n.fake.Faults().LoseReplies(fakenode.Next(next)) }

func (n *Node) String() string { return n.Name() }

// longAgo is how old the memory of a fresh node is: older than any MaxTTL.
const longAgo = 60 * 24 * time.Hour

// admit makes a fresh node vote at once for clients with that prefix: its record of its own memory
// says that it is old. A node that was started again is left to what the clients do about it.
func (n *Node) admit(prefix string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := prefix + "ql:node"
	if !n.fresh || n.fake.Hash(key) != nil {
		return
	}
	since := strconv.FormatInt(n.fake.Now().Add(-longAgo).UnixMicro(), 10)
	n.fake.SetHash(key, map[string]string{
		"id": n.fake.Identity(), "since": since, "from": since, "max": "0", "floor": since,
	}, 0)
}
