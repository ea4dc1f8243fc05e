package integration

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Way leads to a node. The node's own is for all clients; more of them, by Cluster.Ways, are for
// clients that are to be cut off alone. Its methods may be called concurrently.
type Way struct {
	node *Node
	wire *wire
}

// Ways makes another way to each node, for one client. They end with the cluster.
func (c *Cluster) Ways() (Ways, error) {
	var ways Ways
	for _, n := range c.Nodes {
		w, err := n.newWay()
		if err != nil {
			return nil, err
		}
		ways = append(ways, w)
	}
	return ways, nil
}

// Ways are one client's ways to the nodes, in their order.
type Ways []*Way

// Addrs are the addresses of the ways.
func (ways Ways) Addrs() []string {
	addrs := make([]string, len(ways))
	for i, w := range ways {
		addrs[i] = w.Addr()
	}
	return addrs
}

func (n *Node) newWay() (*Way, error) {
	wire, err := newWire(n.id)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wires = append(n.wires, wire)
	return &Way{node: n, wire: wire}, wire.lead(n.target())
}

// Addr is "127.0.0.1:port", the proxy's. It stays the same for the node's life.
func (w *Way) Addr() string { return w.wire.addr() }

// Cut loses all that is sent to the node and all that it says, without a word to either side, as a
// network does that drops packets. Connections can still be made to the proxy; nothing comes back.
func (w *Way) Cut() error { return errors.Join(w.LoseRequests(), w.LoseReplies()) }

// LoseRequests loses what is sent to the node; what it says comes through.
func (w *Way) LoseRequests() error {
	return w.fault("lose requests", "timeout", "upstream", `"timeout": 0`)
}

// LoseReplies loses what the node says: it does what it is asked, and nobody hears of it.
func (w *Way) LoseReplies() error {
	return w.fault("lose replies", "timeout", "downstream", `"timeout": 0`)
}

// Slow delays each way by d, and by up to jitter more or less.
func (w *Way) Slow(d, jitter time.Duration) error {
	attributes := fmt.Sprintf(`"latency": %d, "jitter": %d`, d.Milliseconds(), jitter.Milliseconds())
	return errors.Join(w.fault("slow requests", "latency", "upstream", attributes),
		w.fault("slow replies", "latency", "downstream", attributes))
}

// Shorten lets so many bytes of each connection's replies through and then closes it: replies end
// in the middle.
func (w *Way) Shorten(bytes int) error {
	return w.fault("short replies", "limit_data", "downstream", fmt.Sprintf(`"bytes": %d`, bytes))
}

// Drop ends all connections at once; new ones can be made.
func (w *Way) Drop() error {
	return w.node.change("drop connections", func(context.Context) error {
		w.wire.proxy.Stop()
		return w.wire.lead(w.node.target())
	})
}

// LeadTo leads the way to another node's server, as when an address is given to another machine,
// until its own node starts anew; to its own node it leads back. Connections end.
func (w *Way) LeadTo(other *Node) error {
	other.mu.Lock()
	to := other.target()
	other.mu.Unlock()
	return w.node.change("lead to another server",
		func(context.Context) error { return w.wire.lead(to) })
}

// Heal takes all faults off the way. Connections that had one are closed.
func (w *Way) Heal() error {
	return w.node.change("heal", func(ctx context.Context) error {
		w.wire.proxy.Toxics.ResetToxics(ctx)
		return nil
	})
}

func (w *Way) fault(name, kind, stream, attributes string) error {
	return w.node.change(name, func(context.Context) error {
		return w.wire.add(name, kind, stream, attributes)
	})
}
