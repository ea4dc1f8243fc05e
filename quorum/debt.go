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
	// maxPayment bounds how many are repeated at once, where a node refuses them again and again.
	maxPayment = 1 << 10
)

// A debt is a release, or a swap back, that this node still has to confirm.
type debt struct {
	command *Command
	until   time.Time // the key has ended by itself
	// unsure: an earlier message about the key was never answered and may still arrive, so that
	// the first "nobody's" may be said too early (protocol review, P3).
	unsure bool
	// silent: and the node has said nothing at all since. One that was frozen does what it was
	// sent when it goes on, however long that takes, so the debt outlives the TTL until then.
	silent bool
}

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
	for _, d := range l.debts {
		switch {
		case !d.until.After(now) && !d.silent:
		case len(round.debts) < maxPayment:
			round.debts = append(round.debts, d)
		default:
			rest = append(rest, d)
		}
	}
	clear(l.debts[len(rest):])
	l.debts = rest
	l.scheduleDebts(debtFirst)
	l.mu.Unlock()
	if len(round.debts) == 0 {
		return
	}
	round.next = min(max(2*waited, debtFirst), debtMost)
	round.requests = make([]request, len(round.debts))
	for i := range round.requests {
		d := &round.debts[i]
		round.requests[i] = request{command: d.command, to: round, node: i,
			deadline: now.Add(l.timeout)}
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
	if a.err == nil {
		parse := script.ParseRelease
		if d.command.Script == script.Swap {
			parse = script.ParseExtend
		}
		reply, err := parse(a.reply)
		if err == nil && !(d.unsure && reply.Letter == script.Nobody) {
			return
		}
		d.unsure = d.unsure && err != nil
	}
	l, wait := p.lane, max(p.next, min(p.lane.timeout, debtMost))
	if d.silent && (a.err == nil || isErrorReply(a.err)) {
		// Once more, when whatever is still on its way has had the time of a message.
		d.silent, d.until = false, later(d.until, time.Now().Add(2*wait))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.debts) >= maxDebts {
		return
	}
	l.debts = append(l.debts, d)
	l.scheduleDebts(wait)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
