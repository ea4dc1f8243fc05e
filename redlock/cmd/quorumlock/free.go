package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A freeLine is one node of `free -json`.
type freeLine struct {
	Name      string `json:"name"`
	Node      string `json:"node"`
	Holder    string `json:"holder,omitempty"`
	Hold      string `json:"hold,omitempty"`
	Remaining ms     `json:"remaining_ms"`
	Did       string `json:"did"`
	Error     string `json:"error,omitempty"`
}

// What becomes of a node's key.
const (
	wouldFree = "would free"
	freed     = "freed"
	noKey     = "no key"
	leftAlone = "left alone" // another's
	changed   = "changed hands"
	gone      = "gone meanwhile"
	failed    = "failed"
)

// holdID names one hold of a lock without its owner token, which whoever has it could use.
func holdID(token string) string {
	if token == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return fmt.Sprintf("%x", sum[:4])
}

// free frees the keys of the one who has the most of them. What is freed is exactly what was seen:
// each node compares the owner token.
func (t *tool) free(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	defer c.Close()
	name := t.args[0]
	s, err := c.Inspect(ctx, name)
	if err != nil {
		return err
	}
	engine := door.Engine(c)
	seen, err := engine.Inspect(ctx, name)
	if err != nil {
		return fmt.Errorf("free %q: %w", name, err)
	}
	token, votes, left := quorum.Strongest(seen)
	switch id := holdID(token); {
	case token == "":
		return fmt.Errorf("free %q: %w: no node has a key of it", name, redlock.ErrNotHeld)
	case t.hold != "" && t.hold != id:
		return fmt.Errorf("free %q: %w: hold %s is over, this is hold %s of %s", name,
			redlock.ErrHeld, t.hold, id, quorum.Identity(token))
	}
	var nodes quorum.Set
	var lines []freeLine
	for i, n := range seen {
		line := freeLine{Name: name, Node: s.PerNode[i].Node, Holder: quorum.Identity(n.Holder),
			Hold: holdID(n.Holder), Remaining: ms(n.Left), Did: leftAlone}
		switch {
		case n.Err != nil:
			line.Did, line.Error = failed, n.Err.Error()
		case n.Holder == token:
			nodes |= 1 << i
			line.Did = wouldFree
		case n.Holder == "":
			line.Did = noKey
		}
		lines = append(lines, line)
	}
	holder := quorum.Identity(token)
	whose := fmt.Sprintf("the lock of %s, another %s", printable(holder), remaining(holder, left))
	if votes < s.Quorum {
		whose = fmt.Sprintf("what %s has of it, which is less than a majority", printable(holder))
	}
	if !t.yes {
		t.out.text("%s: would free %s, on %d of %d nodes\n\n", printable(name), whose, nodes.Len(),
			s.Nodes)
		t.freeTable(lines)
		t.out.text("\nThe holder learns of it at its next renewal; until then it and the next holder"+
			" may both be at work.\nTo do it: -yes -hold %s\n", holdID(token))
		return nil
	}
	return t.freeNow(ctx, engine, name, token, nodes, lines)
}

// freeNow frees, and says what became of each node's key.
func (t *tool) freeNow(ctx context.Context, engine *quorum.Engine, name, token string,
	nodes quorum.Set, lines []freeLine,
) error {
	results, err := engine.Free(ctx, name, token, nodes)
	if err != nil {
		return fmt.Errorf("free %q: %w", name, err)
	}
	count := make(map[string]int)
	for i, r := range results {
		line := &lines[i]
		switch {
		case !nodes.Has(i):
		case r.Err != nil:
			line.Did, line.Error = failed, r.Err.Error()
		case r.Freed:
			line.Did = freed
		case r.Holder != "":
			line.Did, line.Holder, line.Hold = changed, quorum.Identity(r.Holder), holdID(r.Holder)
			line.Remaining = ms(r.Left)
		default:
			line.Did = gone
		}
		count[line.Did]++
	}
	t.freeTable(lines)
	switch {
	case count[failed] >= engine.Quorum():
		err = errors.Join(redlock.ErrNoQuorum, errors.New("it may still be held"))
	case count[changed]+count[leftAlone] >= engine.Quorum():
		err = redlock.ErrHeld
	case count[freed] == 0:
		err = redlock.ErrNotHeld
	}
	if err != nil {
		return fmt.Errorf("free %q: freed on %d of %d nodes: %w", name, count[freed], len(lines), err)
	}
	t.out.text("\n%s: freed on %d of %d nodes\n", printable(name), count[freed], len(lines))
	return nil
}

func (t *tool) freeTable(lines []freeLine) {
	t.out.table("NODE", "HOLDER", "HOLD", "REMAINING", "WHAT", "NOTES")
	for _, l := range lines {
		t.out.row(l, l.Node, orDash(l.Holder), orDash(l.Hold), remaining(l.Holder, l.Remaining.span()),
			l.Did, l.Error)
	}
	t.out.flush()
}
