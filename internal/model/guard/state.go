package guard

import "github.com/quorumlock/quorumlock/internal/model/bitset"

// State is one moment of a run.
type State struct {
	now     uint8
	servers [2]server
	primary uint8 // which of them the address leads to
	cutOff  uint8 // the old primary that lives on, from 1; 0: none
	cutAt   uint8

	snapshot    data
	hasSnapshot bool

	holdsUntil uint8 // the end of A's lock; 0: it has none
	rivalVoted bool  // B was given a vote while A's lock was alive

	known    bitset.Set // identities that some client knows
	loading  bitset.Set // identities whose script a client is about to load
	believes bool       // a client believes the node to be new, and is about to say so
	nextID   uint8

	restarts, snapshots, flushes, slowBoots, failOvers uint8 // what may still happen
}

// data is what a snapshot holds and a replica copies.
type data struct {
	lockedUntil uint8 // 0: the lock is free
	marker      uint8 // the identity this data set belongs to; 0: none
	since       uint8 // from when the wait of that identity counts
}

// server is one process.
type server struct {
	id        uint8 // the identity of its memory
	startedAt uint8
	data      data

	// What the process remembers of its own past.
	scripts    bitset.Set // identities whose script is in its cache
	admitted   bool       // the admission script is in its cache
	replicated bool       // data came into it by replication
	flushed    bool
}

type model struct {
	Config
	wait uint8 // how long an identity waits until it votes
}

func newModel(c Config) *model {
	m := &model{Config: c, wait: maxTTL}
	if c.Rules.WaitForLag && c.FailOvers > 0 {
		m.wait += lag
	}
	return m
}

// Initial returns the state in which no client has spoken to the node. Its servers are up for as
// long as any rule asks.
func (m *model) Initial() []State {
	s := State{
		now:       firstTime,
		nextID:    3,
		restarts:  m.Restarts,
		snapshots: m.Snapshots,
		flushes:   m.Flushes,
		slowBoots: m.SlowBoots,
		failOvers: m.FailOvers,
	}
	s.servers[0].id = 1
	if m.FailOvers > 0 {
		s.servers[1].id = 2
	}
	return []State{s}
}

// Settle ends the lock, on the servers and for its holder, when its time is over.
func (m *model) Settle(s *State) {
	for i := range s.servers {
		if d := &s.servers[i].data; s.now >= d.lockedUntil {
			d.lockedUntil = 0
		}
	}
	if s.now >= s.holdsUntil {
		s.holdsUntil = 0
	}
}

// Sort changes nothing: the two servers are not alike.
func (m *model) Sort(*State) {}

// Broken reports a vote for B while A's lock is alive.
func (m *model) Broken(s State) string {
	if s.rivalVoted {
		return "a vote for a rival of a live lock"
	}
	return ""
}
