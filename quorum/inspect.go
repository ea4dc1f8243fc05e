package quorum

import (
	"context"
	"math/rand/v2"
	"time"
)

// An Inspection is what one node knows of a name.
type Inspection struct {
	Holder   string // owner token
	Left     time.Duration
	Register uint64
	Err      error
}

// Look asks one node what it knows of a name, any of those that answer. It is one message, and what
// one node says is no verdict. It blocks for NodeTimeout at the most, or until ctx ends.
func (e *Engine) Look(ctx context.Context, name string) Inspection {
	var answering []int
	for i, l := range e.lanes {
		if !l.isFailing() {
			answering = append(answering, i)
		}
	}
	if len(answering) == 0 {
		return Inspection{Err: errNodeTimeout}
	}
	node := answering[rand.IntN(len(answering))]
	all, err := e.inspect(ctx, name, 1<<node, askInspect)
	if err != nil {
		return Inspection{Err: err}
	}
	return all[node]
}

// Inspect asks every node what it knows of a name. It blocks until all have answered, at most
// NodeTimeout, or until ctx ends.
func (e *Engine) Inspect(ctx context.Context, name string) ([]Inspection, error) {
	return e.inspect(ctx, name, 1<<len(e.lanes)-1, askInspect)
}

// InspectMost is Inspect until it is certain whether a majority has the name as somebody's. Nodes that
// have not answered by then have an error.
func (e *Engine) InspectMost(ctx context.Context, name string) ([]Inspection, error) {
	return e.inspect(ctx, name, 1<<len(e.lanes)-1, askMost)
}

func (e *Engine) inspect(
	ctx context.Context, name string, asked Set, question *question,
) ([]Inspection, error) {
	p := &poll{engine: e, question: question}
	if err := p.ask(ctx, e.inspectMessage(name), asked, 0, e.set.NodeTimeout); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Inspection, len(p.answers))
	for i := range all {
		a := &p.answers[i]
		reply := a.reply(p.question)
		all[i] = Inspection{Holder: reply.Holder, Left: reply.Left,
			Register: reply.Register, Err: a.err}
		if a.said == "" && a.err == nil {
			all[i].Err = errNodeTimeout
		}
	}
	return all, nil
}
