package quorum

import "time"

// wait makes the lane look after deadlines at that time, at the latest. Deadlines are looked after
// by one timer that is set anew only for an earlier moment, so that it costs a busy lane nothing.
func (l *lane) wait(at time.Time) {
	if l.closed || !l.watchAt.IsZero() && !at.Before(l.watchAt) {
		return
	}
	l.watchAt = at
	if l.watch == nil {
		l.watch = time.AfterFunc(time.Until(at), l.look)
		return
	}
	l.watch.Reset(time.Until(at))
}

// look answers what has passed its deadline and sees whether the node still answers.
func (l *lane) look() {
	now := time.Now()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.watchAt = time.Time{}
	overdue := overdue{now: l.engine.moment(now)}
	stuck := false
	for _, f := range l.flights {
		stuck = stuck || !f.took.Add(l.timeout).After(now) && overdue.waits(f.requests)
		for _, r := range f.requests {
			overdue.chain(r)
			if r.answered {
				l.passOn(r)
			}
		}
		if at := f.took.Add(l.timeout); at.After(now) {
			overdue.next(l.engine.moment(at))
		}
	}
	for _, r := range l.queue {
		overdue.chain(r) // those of the queue are passed on when their turn comes
	}
	var dropped []*request
	began := false
	if stuck {
		dropped, began = l.fail(errNodeTimeout)
	}
	if !l.departs.After(now) {
		l.departs = time.Time{}
	} else {
		l.wait(l.departs)
	}
	begin := l.board()
	l.checkIdle()
	if overdue.earliest != 0 {
		l.wait(l.engine.at(overdue.earliest))
	}
	l.mu.Unlock()
	if begin {
		l.engine.crew.carry(l.flying)
	}
	l.tell(overdue.sent, answer{err: errNodeTimeout})
	l.tell(overdue.unsent, answer{err: errUnsent, unsent: true})
	l.tell(dropped, answer{err: errNodeTimeout, unsent: true})
	if began {
		l.trouble(l.index, errNodeTimeout)
	}
}

// overdue collects the requests whose deadline has passed, and the next deadline.
type overdue struct {
	now          time.Duration // as the deadlines are
	sent, unsent []*request
	earliest     time.Duration // 0: none
}

// chain looks at r and those that wait for it.
func (o *overdue) chain(r *request) {
	for ; r != nil; r = r.next {
		switch {
		case r.answered:
		case r.deadline > o.now:
			o.next(r.deadline)
		case r.sent:
			r.answered = true
			o.sent = append(o.sent, r)
		default:
			r.answered = true
			o.unsent = append(o.unsent, r)
		}
	}
}

// waits reports whether somebody still waits for one of the requests.
func (o *overdue) waits(requests []*request) bool {
	for _, r := range requests {
		if !r.answered {
			return true
		}
	}
	return false
}

func (o *overdue) next(at time.Duration) {
	if o.earliest == 0 || at < o.earliest {
		o.earliest = at
	}
}
