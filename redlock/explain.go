package redlock

import (
	"errors"
	"fmt"
	"strings"
)

// explanations say in words what a Redis error code means for a lock, and what to do.
var explanations = []struct{ code, words string }{
	{"MOVED", "not an independent node: it belongs to a Redis Cluster"},
	{"ASK", "not an independent node: it belongs to a Redis Cluster"},
	{"CROSSSLOT", "not an independent node: it belongs to a Redis Cluster"},
	{"CLUSTERDOWN", "not an independent node: it belongs to a Redis Cluster"},
	{"READONLY", "a replica or a read-only server"},
	{"NOAUTH", "wants a password"},
	{"WRONGPASS", "refused the password"},
	{"NOPERM", "the user lacks rights, see docs/protocol.md"},
	{"WRONGTYPE", "the name is in use for something that is not a lock"},
	{"OOM", "out of memory"},
	{"MISCONF", "refuses writes"},
	{"LOADING", "still loads its data"},
	{"BUSY", "busy with somebody's script"},
	{"NOREPLICAS", "refuses writes without enough replicas"},
	{"MASTERDOWN", "a replica that has lost its primary"},
}

// explain puts words before a node's error reply. The reply itself stays below them.
func explain(err error) error {
	text := err.Error()
	var reply interface {
		error
		RedisError() // go-redis marks what a server answered by it
	}
	if errors.As(err, &reply) {
		text = reply.Error() // what stands before it are words of ours
	}
	for _, e := range explanations {
		if rest, ok := strings.CutPrefix(text, e.code); ok && (rest == "" || rest[0] == ' ') {
			return fmt.Errorf("%s: %w", e.words, err)
		}
	}
	return err
}
