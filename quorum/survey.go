package quorum

import (
	"context"
	"sync"
	"time"
)

// A NodeReport is what is known of a node, freshly asked.
type NodeReport struct {
	Facts
	Latency   time.Duration
	Offset    time.Duration // its wall clock minus ours
	VotesFrom time.Time     // by its own clock; zero: by an operator's word, or the guard is off
	MaxTTL    time.Duration // the largest of its users, as it has it; 0: none, or the guard is off
	GuardOff  bool
	Warnings  []string
	Err       error // it does not answer, or gives no vote
	Reachable bool
}

// Survey asks every node how it is. It blocks until all have answered, at most NodeTimeout, or
// until ctx ends; then the report of the others is an error.
func (e *Engine) Survey(ctx context.Context) []NodeReport {
	ctx, cancel := context.WithTimeout(ctx, e.set.NodeTimeout)
	defer cancel()
	var mu sync.Mutex
	reports := make([]NodeReport, len(e.lanes))
	var asked sync.WaitGroup
	for i, l := range e.lanes {
		reports[i].Err = errNodeTimeout
		asked.Go(func() {
			report := l.report(ctx)
			mu.Lock()
			defer mu.Unlock()
			reports[i] = report
		})
	}
	done := make(chan struct{})
	go func() { asked.Wait(); close(done) }()
	select { // a user's client may ignore ctx for long
	case <-done:
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	return append([]NodeReport(nil), reports...)
}

// report asks the lane's node, at first contact for its admission, too: that is what its votes
// depend on.
func (l *lane) report(ctx context.Context) NodeReport {
	l.mu.Lock()
	l.facts.due = true
	l.mu.Unlock()
	l.askWhetherBack()
	sent := time.Now()
	refusal, err := l.introduce(ctx)
	r := NodeReport{Latency: time.Since(sent), Err: err, Reachable: err == nil}
	if err != nil {
		return r
	}
	l.askTime()
	sent = time.Now()
	if err := l.exec(ctx, &Batch{}); err == nil {
		r.Latency = time.Since(sent)
	}
	own := l.engine.set.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Facts, r.Warnings, r.GuardOff = l.facts.Facts, l.facts.warnings, l.guard.off
	r.Err = refusal
	if l.skew.known {
		r.Offset = l.skew.middle() - (own.Wall - own.Mono)
	}
	r.MaxTTL = l.guard.max
	if !r.GuardOff && l.guard.from != 0 {
		from := votesFrom(l.guard.since, l.guard.from, l.guard.max) + l.engine.later(l.guard.max)
		r.VotesFrom = time.Unix(0, int64(from))
		if left := from - (own.Wall + r.Offset); left > 0 && r.Err == nil {
			r.Err = &WaitError{Left: left}
		}
	}
	if r.Err == nil && !r.GuardOff && r.Replicas > 0 && !r.Safe && !l.engine.set.TrustReplicas {
		r.Err = errVotesTwice
	}
	if left := l.distrust(own); r.Err == nil && left > 0 {
		r.Err = &WaitError{Left: left, Stepped: true}
	}
	return r
}
