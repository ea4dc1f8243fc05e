package fakenode

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// A Nature is what a node says of itself beyond its memory: who it is and how it is set up.
type Nature struct {
	Cluster bool
	Evicts  string // the maxmemory-policy, where it may evict keys
	Primary string // host:port of a replica's primary
	Lag     time.Duration
	RunID   string // of another node, to be the same server behind another address
}

// SetNature changes what Describe says. Whoever has described the node before learns of it when
// it asks again.
func (n *Node) SetNature(nature Nature) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nature = nature
}

// Describe says what INFO and CONFIG would. It takes the way of any message.
func (l *Link) Describe(ctx context.Context) (quorum.Facts, error) {
	if err := l.Exec(ctx, &quorum.Batch{}); err != nil {
		return quorum.Facts{}, err
	}
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refusals.of("info"); err != nil {
		return quorum.Facts{}, err
	}
	facts := quorum.Facts{
		RunID: n.identity.runID, Version: "7.0.15", Role: "master",
		Replicas: n.identity.replicas, Safe: n.identity.minToWrite,
		Cluster: n.nature.Cluster, Evicts: n.nature.Evicts, Lag: n.nature.Lag,
	}
	if n.identity.slave {
		facts.Role, facts.Primary = "slave", n.nature.Primary
	}
	if n.nature.RunID != "" {
		facts.RunID = n.nature.RunID
	}
	return facts, nil
}

// Fresh is false: a link is one connection for its life.
func (l *Link) Fresh() bool { return false }

// Describe says what INFO and CONFIG would.
func (n *Node) Describe(ctx context.Context) (quorum.Facts, error) {
	return n.self.Describe(ctx)
}

// Fresh is false.
func (n *Node) Fresh() bool { return false }
