package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Facts are what a node says of itself in INFO and CONFIG. Fields that it does not tell are zero.
type Facts struct {
	RunID    string // of the process: the same behind two addresses is one server
	Version  string
	Role     string // "master", "slave"
	Primary  string // host:port, of a replica
	Cluster  bool
	Evicts   string        // the maxmemory-policy, where it may evict keys
	Replicas int           // connected
	Safe     bool          // min-replicas-to-write is set
	Lag      time.Duration // min-replicas-max-lag
}

// facts are what a lane knows of its node's. Guarded by lane.mu.
type facts struct {
	Facts
	known    bool
	due      bool // to be read again before the next vote
	refusal  error
	warnings []string
}

var errCluster = errors.New("gives no vote: not an independent node," +
	" it is in Redis Cluster mode")

// checkFacts reads what the node says of itself, at first contact and whenever it may have become
// another one, and refuses its vote where it is no node of its own. err: it could not be asked.
func (l *lane) checkFacts(ctx context.Context) (refusal, err error) {
	l.mu.Lock()
	current := l.facts.known && !l.facts.due && !l.node.Fresh()
	refusal = l.facts.refusal
	l.mu.Unlock()
	if current {
		return refusal, nil
	}
	got, err := l.describe(ctx)
	if err != nil && !isErrorReply(err) {
		return nil, err
	}
	// A node that does not tell is taken as it is: what can be checked is checked elsewhere.
	f := facts{Facts: got, known: true}
	f.refusal = l.engine.judgeFacts(l.index, got)
	f.warnings = l.engine.warnings(l.index, got, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = f
	return f.refusal, nil
}

// describe asks the node, and survives a client that panics.
func (l *lane) describe(ctx context.Context) (got Facts, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the node's client panicked: %v", p)
		}
	}()
	got, err = l.node.Describe(ctx)
	if err != nil && !isErrorReply(err) {
		err = ownWords(err)
	}
	return got, err
}

// judgeFacts says why a node cannot vote for itself. Of several addresses of one server the first
// that was met votes.
func (e *Engine) judgeFacts(i int, got Facts) error {
	e.serversMu.Lock()
	defer e.serversMu.Unlock()
	for id, owner := range e.servers {
		if owner == i && id != got.RunID {
			delete(e.servers, id)
		}
	}
	if got.RunID != "" {
		if owner, taken := e.servers[got.RunID]; taken && owner != i {
			return fmt.Errorf("gives no vote: it is the same server as node %s (run id %s)",
				e.nodes[owner].Name(), got.RunID)
		}
		if e.servers == nil {
			e.servers = make(map[string]int)
		}
		e.servers[got.RunID] = i
	}
	switch {
	case got.Cluster:
		return errCluster
	case got.Role == "slave":
		if primary := e.nodeAt(got.Primary); primary != "" {
			return fmt.Errorf("%w of another node, %s", errNotPrimary, primary)
		}
		return errNotPrimary
	}
	return nil
}

// nodeAt is the name of the node with this address, if there is one.
func (e *Engine) nodeAt(addr string) string {
	for _, node := range e.nodes {
		if addr != "" && SameAddr(node.Name(), addr) {
			return node.Name()
		}
	}
	return ""
}

// warnings are what an operator should know of a node that votes all the same.
func (e *Engine) warnings(i int, got Facts, infoErr error) (warnings []string) {
	if infoErr != nil {
		warnings = append(warnings, fmt.Sprintf("INFO is refused, so it cannot be checked whether"+
			" the node is independent of the others: %v", infoErr))
	}
	if got.Evicts != "" {
		warnings = append(warnings, "maxmemory-policy "+got.Evicts+
			" may evict locks: use noeviction")
	}
	if got.Replicas > 0 && !got.Safe && e.set.TrustReplicas {
		warnings = append(warnings, "has replicas without min-replicas-to-write: it can vote twice"+
			" after a fail-over, unless TrustReplicas is true of it")
	}
	for _, w := range warnings {
		e.warnOnce(i, w)
	}
	return warnings
}

// warnOnce tells of a warning the first time it is found.
func (e *Engine) warnOnce(i int, text string) {
	key := fmt.Sprint(i, " ", text)
	e.serversMu.Lock()
	said := e.said[key]
	if e.said == nil {
		e.said = make(map[string]bool)
	}
	e.said[key] = true
	e.serversMu.Unlock()
	if !said && e.set.Warn != nil {
		e.set.Warn(i, text)
	}
}

// readFacts reads INFO, and what CONFIG GET says of min-replicas-max-lag.
func readFacts(info, lag string) (f Facts) {
	var host, port, limit, policy string
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch key {
		case "run_id":
			f.RunID = value
		case "redis_version":
			f.Version = value
		case "role":
			f.Role = value
		case "master_host":
			host = value
		case "master_port":
			port = value
		case "cluster_enabled":
			f.Cluster = value == "1"
		case "maxmemory":
			limit = value
		case "maxmemory_policy":
			policy = value
		case "connected_slaves":
			fmt.Sscan(value, &f.Replicas)
		case "min_slaves_good_slaves":
			f.Safe = true
		}
	}
	if host != "" {
		f.Primary = host + ":" + port
	}
	if policy != "" && policy != "noeviction" && limit != "0" {
		f.Evicts = policy
	}
	var seconds int64
	if _, err := fmt.Sscan(lag, &seconds); err == nil && seconds > 0 && seconds < 1<<20 {
		f.Lag = time.Duration(seconds) * time.Second
	}
	return f
}
