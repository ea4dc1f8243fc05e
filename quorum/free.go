package quorum

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// A Freed is what became of a key that an operator freed.
type Freed struct {
	Freed  bool
	Holder string // another's owner token, which was found and left alone
	Left   time.Duration
	Err    error // the node did not say
}

// Free frees a name, whoever holds it, on the nodes in the set, each only if its key is still that
// of the owner token: an operator's act, for a holder that is known to be dead or wrong. It blocks
// until all have answered, at most NodeTimeout, or until ctx ends. The result has one element for
// each node of the engine; those not in the set are left zero.
func (e *Engine) Free(ctx context.Context, name, token string, nodes Set) ([]Freed, error) {
	p := &poll{engine: e, question: askFree}
	message := e.releaseMessage(new(releaseParcel), name, token, 0)
	if err := p.ask(ctx, message, nodes, 0, e.set.NodeTimeout); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Freed, len(p.answers))
	for i := range all {
		a := &p.answers[i]
		reply := a.reply(p.question)
		all[i] = Freed{Freed: a.err == nil && reply.Letter == script.Done,
			Holder: reply.Holder, Left: reply.Left, Err: a.err}
	}
	return all, nil
}
