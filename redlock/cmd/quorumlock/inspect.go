package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/quorumlock/quorumlock/redlock"
)

// A statusLine is a lock in `inspect -json`, and without the nodes in `watch -json`.
type statusLine struct {
	Time      string     `json:"time,omitempty"`
	Event     string     `json:"event,omitempty"`
	Name      string     `json:"name"`
	Held      bool       `json:"held"`
	Holder    string     `json:"holder,omitempty"`
	Token     uint64     `json:"token"`
	Remaining ms         `json:"remaining_ms"`
	Votes     int        `json:"votes"`
	Quorum    int        `json:"quorum"`
	Nodes     int        `json:"nodes"`
	PerNode   []lockLine `json:"per_node,omitempty"`
	Error     string     `json:"error,omitempty"`
}

// A lockLine is what one node knows of it.
type lockLine struct {
	Node      string `json:"node"`
	Holder    string `json:"holder,omitempty"`
	Remaining ms     `json:"remaining_ms"` // negative: a key without an end
	Token     uint64 `json:"token"`
	Error     string `json:"error,omitempty"`
}

// inspect shows who holds a lock.
func (t *tool) inspect(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Inspect(ctx, t.args[0])
	if s.Name == "" || s.PerNode == nil {
		return err
	}
	line := statusLineOf(s, err)
	for _, n := range s.PerNode {
		line.PerNode = append(line.PerNode, lockLine{Node: n.Node, Holder: n.Holder,
			Remaining: ms(n.Remaining), Token: n.Token, Error: reason(n.Err)})
	}
	t.out.text("%s\n\n", describe(s, err))
	t.out.table("NODE", "HOLDER", "REMAINING", "TOKEN", "NOTES")
	for _, n := range s.PerNode {
		t.out.cells(n.Node, orDash(n.Holder), remaining(n.Holder, n.Remaining), number(n.Token),
			reason(n.Err))
	}
	t.out.object(line)
	t.out.flush()
	return err
}

func statusLineOf(s redlock.Status, err error) statusLine {
	line := statusLine{Name: s.Name, Held: s.Holder != "", Holder: s.Holder, Token: s.Token,
		Remaining: ms(s.Remaining), Votes: s.Votes, Quorum: s.Quorum, Nodes: s.Nodes}
	if err != nil {
		line.Error = err.Error()
	}
	return line
}

// describe is a lock in one sentence.
func describe(s redlock.Status, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", printable(s.Name))
	switch {
	case err != nil:
		b.WriteString("too few nodes answer to say who holds it")
		return b.String()
	case s.Holder != "":
		fmt.Fprintf(&b, "held by %s, another %s", printable(s.Holder),
			remaining(s.Holder, s.Remaining))
	default:
		b.WriteString("free")
	}
	if s.Votes > 0 {
		fmt.Fprintf(&b, "; its key is on %d of %d nodes, %d needed", s.Votes, s.Nodes, s.Quorum)
	}
	if s.Token > 0 {
		fmt.Fprintf(&b, "; fencing token %d", s.Token)
	}
	if s.Holder == "" && s.Votes > 0 {
		b.WriteString("; a leftover, or somebody is about to take it")
	}
	return b.String()
}
