package quorum

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

const (
	debtFirst = 50 * time.Millisecond
	debtMost  = time.Second
	// maxDebts bounds what a lane remembers of releases to be repeated. Only keys that were on the
	// node when it failed come here, and each ends by its TTL in any case.
	maxDebts = 1 << 16
	// maxPayment bounds how many are repeated at once: a node that was asked more than it can do must
	// not be kept busy with them until it fails again.
	maxPayment = 1 << 7
)

// A debt is a release, or a swap back, that this node still has to confirm.
type debt struct {
	command *Command
	until   time.Time // the key has ended by itself
	// wanted is how many answers it takes until nothing sent earlier can still be on its way; 0
	// where all of that was answered. Until then no answer is the last word (protocol review, P3):
	// what is still to come may set the key after it was freed, or after a rival's has ended. And
	// the debt outlives the TTL: a node that was frozen does what it was sent when it goes on,
	// however long that takes.
	wanted  int
	after   time.Time // it is not asked for before
	settled func()    // if not nil, called when nothing is owed any more
}

// wantedUnsure: the first answer may be to a message that overtook the earlier one; the second is
// to one that was sent when that had had its time, twice NodeTimeout: once until it was given up,
// or until a connection that broke had it sent anew, and once more.
const wantedUnsure = 2

// owe makes the lane repeat a release until the node confirms it or the key has ended.
func (l *lane) owe(d debt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.debts) >= maxDebts {
		return
	}
	l.debts = append(l.debts, d)
	l.scheduleDebts(debtFirst)
}

// scheduleDebts is called with l.mu held. While the node fails the probe pays, not the timer.
func (l *lane) scheduleDebts(wait time.Duration) {
	if len(l.debts) == 0 || l.closed || l.debtWait > 0 {
		return
	}
	l.debtWait = wait
	if l.debtTry == nil {
		l.debtTry = time.AfterFunc(wait, l.payDebts)
		return
	}
	l.debtTry.Reset(wait)
}

// payDebts sends each release once more.
func (l *lane) payDebts() {
	l.mu.Lock()
	waited := l.debtWait
	l.debtWait = 0
	if l.closed || l.failing != nil {
		l.mu.Unlock()
		return
	}
	now := time.Now()
	round := &payment{lane: l}
	rest := l.debts[:0]
	var ended []debt
	soonest := debtMost
	for _, d := range l.debts {
		switch {
		case !d.until.After(now) && d.wanted == 0:
			ended = append(ended, d)
		case d.after.After(now):
			rest = append(rest, d)
			soonest = min(soonest, d.after.Sub(now))
		case len(round.debts) < maxPayment:
			round.debts = append(round.debts, d)
		default:
			rest = append(rest, d)
			soonest = 0
		}
	}
	clear(l.debts[len(rest):])
	l.debts = rest
	l.scheduleDebts(max(soonest, debtFirst))
	l.mu.Unlock()
	for _, d := range ended {
		d.settle()
	}
	if len(round.debts) == 0 {
		return
	}
	round.next = min(max(2*waited, debtFirst), debtMost)
	round.requests = make([]request, len(round.debts))
	for i := range round.requests {
		d := &round.debts[i]
		// Nothing else of the same owner is out, and others must not wait for what is long over.
		round.requests[i] = request{command: d.command, to: round, node: int16(i),
			deadline: l.engine.moment(now.Add(l.timeout)), apart: true}
		l.submit(&round.requests[i])
	}
}

// A payment is one round of repeated releases at one node.
type payment struct {
	lane     *lane
	debts    []debt
	requests []request
	next     time.Duration
}

// answer settles a debt, or puts it back.
func (p *payment) answer(r *request, a answer) {
	if a.late {
		return
	}
	d := p.debts[r.node]
	if a.err == nil && settles(d, a.reply) {
		d.settle()
		return
	}
	l, wait := p.lane, max(p.next, min(p.lane.timeout, debtMost))
	if d.wanted > 0 && (a.err == nil || isErrorReply(a.err)) {
		d.wanted--
		d.after = time.Now().Add(2 * min(l.timeout, debtMost))
		wait = max(wait, time.Until(d.after))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.debts) >= maxDebts {
		return
	}
	l.debts = append(l.debts, d)
	l.scheduleDebts(wait)
}

// settles reports whether the reply ends the debt: nothing that could still bring the key is on its
// way.
func settles(d debt, text string) bool {
	parse := script.ParseRelease
	if d.command.Script == script.Swap {
		parse = script.ParseExtend
	}
	_, err := parse(text)
	return err == nil && d.wanted <= 1
}

func (d debt) settle() {
	if d.settled != nil {
		d.settled()
	}
}
