package fakenode

import (
	"strings"
)

// admit is admit.lua: settles from when this node's memory may vote.
func admit(r *run) string {
	mode := r.arg(3)
	if mode == "look" {
		if r.find(r.key(1)) == nil {
			return "x0"
		}
		return "x1"
	}
	info := r.info()
	id := infoField(info, "master_replid")
	if infoField(info, "role") != "master" || id == "" {
		return "r"
	}
	now := float64(r.now)
	node, all := r.hmget(r.key(1), "id", "since", "from", "max", "floor")
	most := r.number(r.arg(1))
	if mode != "vote" && node[3] != "" {
		most = max(most, r.number(node[3]))
	}
	wait := most * 1000
	if hasReplicas(info) {
		wait += r.number(r.arg(2)) * 1000
	}
	known := all && node[0] == id
	letter := "+"
	switch {
	case mode == "see" && !known:
		return "x0"
	case mode == "see":
		letter = "="
	case mode == "vote":
		r.hset(r.key(1), "id", id, "from", "0", "max", wireNumber(most),
			"floor", wireNumber(now+wait))
		if !known {
			r.hset(r.key(1), "since", wireNumber(now))
		}
	case !known || mode == "renew" || r.number(node[1]) > now || r.number(node[2]) > now+wait:
		from := wireNumber(now + wait)
		r.hset(r.key(1), "id", id, "since", wireNumber(now), "from", from,
			"max", wireNumber(most), "floor", from)
	default:
		letter = "="
		r.larger(r.key(1), node[1], node[2], node[3], node[4], wireNumber(most))
	}
	node, _ = r.hmget(r.key(1), "since", "from", "max")
	return letter + " " + r.time() + " " + strings.Join(node, " ") + " " + id
}

// info is INFO replication inside a script.
func (r *run) info() string {
	text, err := r.node.info()
	if err != nil {
		r.fail(err.Error())
	}
	return text
}

// hasReplicas reports whether the node has replicas, or was one.
func hasReplicas(info string) bool {
	former := strings.Trim(infoField(info, "master_replid2"), "0")
	return infoField(info, "connected_slaves") != "0" || former != ""
}

func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
