package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A nodeLine is one node of `nodes -json`.
type nodeLine struct {
	Node        string     `json:"node"`
	Votes       bool       `json:"votes"`
	Reachable   bool       `json:"reachable"`
	Version     string     `json:"version,omitempty"`
	Latency     ms         `json:"latency_ms"`
	ClockOffset ms         `json:"clock_offset_ms"`
	VotesFrom   *time.Time `json:"votes_from,omitempty"`
	MaxTTL      ms         `json:"max_ttl_ms"`
	GuardOff    bool       `json:"guard_off"`
	Warnings    []string   `json:"warnings,omitempty"`
	Error       string     `json:"error,omitempty"`
}

// nodes shows how each node is.
func (t *tool) nodes(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	defer c.Close()
	all := c.Nodes(ctx)
	voting := 0
	t.out.table("NODE", "VOTES", "VERSION", "LATENCY", "CLOCK", "MAXTTL", "NOTES")
	for _, n := range all {
		if n.Err == nil {
			voting++
		}
		t.out.row(nodeLineOf(n), nodeCells(n)...)
	}
	t.out.flush()
	need := len(all)/2 + 1
	t.out.text("\n%d of %d nodes vote, %d needed\n", voting, len(all), need)
	if voting < need {
		return fmt.Errorf("%w: %d of %d nodes vote, %d needed", redlock.ErrNoQuorum, voting,
			len(all), need)
	}
	return nil
}

func nodeLineOf(n redlock.NodeStatus) nodeLine {
	line := nodeLine{Node: n.Node, Votes: n.Err == nil, Reachable: n.Reachable, Version: n.Version,
		Latency: ms(n.Latency), ClockOffset: ms(n.ClockOffset), MaxTTL: ms(n.MaxTTL),
		GuardOff: n.GuardOff, Warnings: n.Warnings, Error: reason(n.Err)}
	if !n.VotesFrom.IsZero() {
		from := n.VotesFrom.UTC()
		line.VotesFrom = &from
	}
	return line
}

func nodeCells(n redlock.NodeStatus) []string {
	cells := []string{n.Node, "no", "-", "-", "-", "-"}
	if n.Err == nil {
		cells[1] = "yes"
	}
	if n.Reachable {
		cells[2] = orDash(n.Version)
		cells[3] = n.Latency.Round(10 * time.Microsecond).String()
		cells[4] = fmt.Sprintf("%+.1fms", float64(n.ClockOffset)/float64(time.Millisecond))
	}
	if n.MaxTTL > 0 {
		cells[5] = n.MaxTTL.String()
	}
	notes := n.Warnings
	if n.GuardOff {
		notes = append([]string{"no restart guard"}, notes...)
	}
	if n.Err != nil {
		notes = append([]string{reason(n.Err)}, notes...)
	}
	return append(cells, strings.Join(notes, "; "))
}

// reason is an error without the node's name, which stands beside it.
func reason(err error) string {
	if err == nil {
		return ""
	}
	var node *redlock.NodeError
	if errors.As(err, &node) {
		return node.Err.Error()
	}
	return err.Error()
}

// An admitLine is one node of `admit -json`.
type admitLine struct {
	Node     string `json:"node"`
	Admitted bool   `json:"admitted"`
	Error    string `json:"error,omitempty"`
}

// admit gives the operator's word for nodes. A node's MaxTTL is set by it, also to less than it
// was, so it is done with the largest that any node has of its users.
func (t *tool) admit(ctx context.Context) error {
	look, err := t.client()
	if err != nil {
		return err
	}
	defer look.Close()
	maxTTL := t.maxTTL
	statuses := look.Nodes(ctx)
	if maxTTL == 0 {
		for _, n := range statuses {
			maxTTL = max(maxTTL, n.MaxTTL)
		}
	}
	if maxTTL == 0 {
		maxTTL = redlock.DefaultTTL // new nodes; whoever uses more raises it with the first lock
	}
	c, err := t.clientWith(redlock.Config{TTL: maxTTL, NodeTimeout: min(t.timeout, maxTTL/4)})
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Admit(ctx, t.args...)
	if errors.Is(err, redlock.ErrInvalid) {
		return err
	}
	t.out.table("NODE", "ADMITTED", "NOTES")
	for _, n := range statuses {
		if len(t.args) > 0 && !contains(t.args, n.Node) {
			continue
		}
		line := admitLine{Node: n.Node, Admitted: true}
		if failed := nodeError(err, n.Node); failed != nil {
			line.Admitted, line.Error = false, reason(failed)
		}
		t.out.row(line, n.Node, yesNo(line.Admitted), line.Error)
	}
	t.out.flush()
	return err
}

// nodeError is the error of that node in a joined one.
func nodeError(err error, node string) error {
	var one *redlock.NodeError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if found := nodeError(e, node); found != nil {
				return found
			}
		}
		return nil
	}
	if errors.As(err, &one) && one.Node != node {
		return nil
	}
	return err
}
