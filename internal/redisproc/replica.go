package redisproc

import (
	"context"
	"fmt"
)

// ReplicaOf makes the node a replica of primary and waits until it follows it; nil makes it a
// primary again, with the data it has. The node is still a replica after a Restart.
func (n *Node) ReplicaOf(primary *Node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), syncTimeout)
	defer cancel()
	if primary == nil {
		_, err := n.Do(ctx, "REPLICAOF", "NO", "ONE")
		if err == nil {
			n.primary = nil
		}
		return n.wrap("promote", err)
	}
	if err := n.follow(ctx, primary); err != nil {
		return n.wrap("follow "+primary.Addr(), err)
	}
	n.primary = primary
	return nil
}

func (n *Node) follow(ctx context.Context, primary *Node) error {
	user, password := primary.settings.credentials()
	for _, command := range [][]any{
		{"CONFIG", "SET", "masteruser", user},
		{"CONFIG", "SET", "masterauth", password},
		{"REPLICAOF", "127.0.0.1", primary.port.Number()},
	} {
		if _, err := n.Do(ctx, command...); err != nil {
			return err
		}
	}
	return poll(ctx, func() (bool, error) {
		info, err := n.info(ctx, "replication")
		return info["master_link_status"] == "up", err
	})
}

// replicaLines are the lines of redis.conf that keep a replica one over a Restart.
func (n *Node) replicaLines() []string {
	if n.primary == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("replicaof 127.0.0.1 %d", n.primary.port.Number())}
	user, password := n.primary.settings.credentials()
	if password == "" {
		return lines
	}
	return append(lines, fmt.Sprintf("masteruser %q", user), fmt.Sprintf("masterauth %q", password))
}
