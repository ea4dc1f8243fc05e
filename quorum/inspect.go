package quorum

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// An Inspection is what one node knows of a name.
type Inspection struct {
	Holder   string // owner token
	Left     time.Duration
	Register uint64
	Err      error
}

// Look asks one node what it knows of a name, with each turn another one of those that answer: one
// message, and what one node says is no verdict. It blocks for NodeTimeout at the most, or until ctx
// ends.
func (e *Engine) Look(ctx context.Context, name string, turn int) Inspection {
	node := turn % len(e.lanes)
	for i := range e.lanes {
		if next := (turn + i) % len(e.lanes); !e.lanes[next].isFailing() {
			node = next
			break
		}
	}
	p := &poll{
		engine: e, command: e.inspectMessage(name), parse: script.ParseInspect,
		enough: func(Tally) bool { return false },
	}
	if err := p.ask(ctx, 1<<node, 0, e.set.NodeTimeout); err != nil {
		return Inspection{Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[node].inspection()
}

// Inspect asks every node what it knows of a name. It blocks until all have answered, at most
// NodeTimeout, or until ctx ends.
func (e *Engine) Inspect(ctx context.Context, name string) ([]Inspection, error) {
	p := &poll{
		engine: e, command: e.inspectMessage(name), parse: script.ParseInspect,
		enough: func(Tally) bool { return false },
	}
	if err := p.ask(ctx, 1<<len(e.lanes)-1, 0, e.set.NodeTimeout); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Inspection, len(p.answers))
	for i := range all {
		all[i] = p.answers[i].inspection()
	}
	return all, nil
}

func (a *pollAnswer) inspection() Inspection {
	return Inspection{Holder: a.reply.Holder, Left: a.reply.Left, Register: a.reply.Register,
		Err: a.err}
}
