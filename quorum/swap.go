package quorum

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// Swap makes a lock that goes by the owner token from one that goes by to, on a majority of all
// nodes, on each of which it was from's until then. Only voters are asked: a key elsewhere is no
// proof that the node remembers (protocol review, P1). It blocks until that is decided. Where it
// fails, what was swapped is swapped back, so that the handle can be tried again; where it
// succeeds, what is left of from elsewhere is freed in the background.
func (e *Engine) Swap(
	ctx context.Context, name, from, to string, ttl time.Duration, voters Set,
) Extension {
	rest := Set(1<<len(e.lanes)-1) &^ voters
	quorum := e.Quorum()
	p := &poll{
		engine:  e,
		command: e.swapMessage(name, from, to, ttl),
		started: e.set.Clock.Now(),
		parse:   script.ParseExtend,
		enough:  func(t Tally) bool { return DecideHold(t, quorum) != HoldUnknown },
	}
	x := Extension{Started: p.started}
	if x.Err = p.ask(ctx, voters, rest, e.messageTimeout(ttl)); x.Err == nil {
		x.Tally, x.Errs = p.sum()
		x.Verdict = DecideHold(x.Tally, quorum)
	}
	if x.Verdict != HoldKept {
		x.Holder, x.Remaining = p.rival()
		back := &poll{engine: e, command: e.swapMessage(name, to, from, time.Millisecond),
			parse: script.ParseExtend, enough: func(Tally) bool { return false },
			decided: func(*poll) {}}
		until := time.Now().Add(ttl)
		back.complete = func(*poll) {
			unsure := p.silent()
			for i := range back.answers {
				switch {
				case rest.Has(i): // not asked
				case unsure.Has(i):
					e.lanes[i].owe(debt{command: back.command, until: until, wanted: wantedUnsure})
				case back.answers[i].err != nil:
					e.lanes[i].owe(debt{command: back.command, until: until})
				}
			}
		}
		back.send(voters, 0, e.set.NodeTimeout)
		return x
	}
	x.Voters = p.voters()
	// Also on voters that have not answered: behind a swap that still comes it finds nothing of
	// from's.
	rest |= voters &^ x.Voters
	e.Release(Hold{Name: name, Token: from, TTL: ttl, Touched: rest, Unsure: rest}, nil, nil)
	return x
}
