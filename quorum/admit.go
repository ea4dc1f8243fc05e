package quorum

import (
	"context"
	"errors"
	"sync"
)

// Admit makes the nodes in the set vote at once: an operator's word that they hold no forgotten
// lock. It asks them side by side and blocks until all have answered, at most NodeTimeout, or
// until ctx ends. The errors are those of the nodes that could not be admitted.
func (e *Engine) Admit(ctx context.Context, nodes Set) []NodeErr {
	ctx, cancel := context.WithTimeoutCause(ctx, e.set.NodeTimeout, errNodeTimeout)
	defer cancel()
	var mu sync.Mutex
	var errs []NodeErr
	var pending sync.WaitGroup
	done := make(chan struct{})
	for i, l := range e.lanes {
		if !nodes.Has(i) {
			continue
		}
		pending.Go(func() {
			if err := l.admitNow(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, NodeErr{Node: i, Err: err})
			}
		})
	}
	// A user's client may ignore ctx for long.
	go func() { pending.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return e.unanswered(&mu, &errs, nodes, context.Cause(ctx))
	}
	return errs
}

// unanswered is for the nodes whose answer is not there when the wait is over. It cannot know
// which succeeded meanwhile, so it names those which it asked and which have not failed otherwise.
func (e *Engine) unanswered(mu *sync.Mutex, errs *[]NodeErr, nodes Set, cause error) []NodeErr {
	mu.Lock()
	defer mu.Unlock()
	all := append([]NodeErr(nil), *errs...)
	for _, err := range all {
		nodes &^= 1 << err.Node
	}
	for i, l := range e.lanes {
		if nodes.Has(i) && !l.votesByWord() {
			all = append(all, NodeErr{Node: i, Err: cause})
		}
	}
	return all
}

// votesByWord reports whether the node is known to vote by an operator's word.
func (l *lane) votesByWord() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard.off || l.guard.identity != "" && l.guard.from == 0
}

// admitNow is admit for an operator.
func (l *lane) admitNow(ctx context.Context) error {
	l.askWhetherBack()
	refusal, err := l.checkFacts(ctx)
	if _, off := l.expected(); refusal == nil && err == nil && !off {
		refusal, err = l.admit(ctx, "vote")
	}
	return errors.Join(refusal, err)
}
