package quorum

import (
	"context"
	"time"
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
	p := &poll{engine: e, question: askExtend}
	x := Extension{Started: e.set.Clock.Now()}
	x.Err = p.ask(ctx, e.swapMessage(name, from, to, ttl), voters, rest, e.messageTimeout(ttl))
	if x.Err == nil {
		x.Tally, x.Errs = p.sum()
		x.Verdict = DecideHold(x.Tally, e.Quorum())
	}
	if x.Verdict != HoldKept {
		x.Holder, x.Remaining = p.rival()
		message := e.swapMessage(name, to, from, time.Millisecond)
		back := &poll{engine: e, question: askBack, decided: func(*poll) {}}
		until := time.Now().Add(ttl)
		back.complete = func(*poll) {
			unsure := p.silent()
			for i := range back.answers {
				switch {
				case rest.Has(i): // not asked
				case unsure.Has(i):
					e.lanes[i].owe(debt{command: message, until: until, wanted: wantedUnsure})
				case back.answers[i].err != nil:
					e.lanes[i].owe(debt{command: message, until: until})
				}
			}
		}
		back.send(message, voters, 0, e.set.NodeTimeout)
		return x
	}
	x.Voters = p.voters()
	// Also on voters that have not answered: behind a swap that still comes it finds nothing of
	// from's.
	rest |= voters &^ x.Voters
	e.Release(Hold{Name: name, Token: from, TTL: ttl, Touched: rest, Unsure: rest}, nil, nil)
	return x
}
