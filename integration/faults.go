package integration

import (
	"fmt"
	"slices"
	"strings"
)

// Faults are what was done to the node so far, in words, each once: what its methods did, and the
// commands of Do that change a server.
func (n *Node) Faults() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.faults)
}

// note adds one. Called with n.mu held.
func (n *Node) note(what string) {
	if !slices.Contains(n.faults, what) {
		n.faults = append(n.faults, what)
	}
}

// restores are what ends a fault.
var restores = []string{"start", "unpause", "heal"}

// changes are commands that change a server or its data, with how many words tell them apart.
var changes = map[string]int{
	"ACL SETUSER": 2, "BGSAVE": 1, "CLIENT KILL": 2, "CLIENT PAUSE": 4, "CONFIG SET": 3, "DEL": 1,
	"EVAL": 2, "FLUSHALL": 1, "HSET": 1, "REPLICAOF": 1, "SCRIPT FLUSH": 2, "SENTINEL FAILOVER": 2,
	"SET": 1,
}

// changeOf is the change that a command is; "" if it is none.
func changeOf(command []any) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = fmt.Sprint(word)
	}
	text := strings.Join(words, " ")
	for change, count := range changes {
		if text == change || strings.HasPrefix(text, change+" ") {
			return strings.Join(words[:min(count, len(words))], " ")
		}
	}
	return ""
}
