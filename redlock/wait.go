package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/window"
	"github.com/quorumlock/quorumlock/quorum"
)

// lines keeps those who wait in this process in order: per name one contends at the nodes, the
// others stand behind it, first come first served. A line lasts as long as somebody stands in it.
type lines struct {
	mu     sync.Mutex
	byName map[string]*line
}

// spareLines are those nobody stands in any more, to be used again.
var spareLines = sync.Pool{New: func() any { return new(line) }}

type line struct {
	places []*place
	last   *RoundError // what the contender was last told

	first place // room for the one that mostly is alone
	room  [1]*place
}

type place struct {
	turn chan struct{} // closed when it is the first; nil: it was from the beginning
}

// join stands at the end of the line of name.
func (s *lines) join(name string) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = make(map[string]*line)
	}
	l := s.byName[name]
	if l == nil {
		l = spareLines.Get().(*line)
		l.places = append(l.room[:0], &l.first)
		s.byName[name] = l
		return &l.first
	}
	p := &place{turn: make(chan struct{})}
	l.places = append(l.places, p)
	return p
}

// leave gives the place up, first or not.
func (s *lines) leave(name string, p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byName[name]
	for i, other := range l.places {
		if other != p {
			continue
		}
		l.places = append(l.places[:i], l.places[i+1:]...)
		if len(l.places) == 0 {
			delete(s.byName, name)
			*l = line{}
			spareLines.Put(l)
		} else if i == 0 {
			close(l.places[0].turn)
		}
		return
	}
}

// told remembers what the contender was told, for those behind it whose patience ends first.
func (s *lines) told(name string, err *RoundError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byName[name]; l != nil {
		l.last = err
	}
}

func (s *lines) last(name string) *RoundError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byName[name]; l != nil {
		return l.last
	}
	return nil
}

// length is how many stand in the line of name.
func (s *lines) length(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byName[name]; l != nil {
		return len(l.places)
	}
	return 0
}

// Lock takes the lock, waiting for it until ctx ends. Within a process calls for one name are
// served in their order; between processes whoever comes first after a release. It wakes by
// notification when the holder frees the lock, and by the clock when a dead holder's keys end.
// Nodes that are down or give no vote are waited for, too.
//
// On failure nothing is held. When ctx ended during the wait, the error matches the context's error and
// ErrHeld or ErrNoQuorum, whichever a majority answered last; one that is over before the call, the
// context's alone. Others: ErrInvalid, ErrClosed.
func (c *Client) Lock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	o, err := c.options(opts)
	if err != nil {
		return nil, during("lock", name, err)
	}
	if err := c.begin(ctx, "lock", name); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	return c.waitFor(ctx, name, o)
}

// waitFor is Lock without its checks.
func (c *Client) waitFor(ctx context.Context, name string, o lockOptions) (*Lock, error) {
	called := time.Now()
	place := c.lines.join(name)
	defer c.lines.leave(name, place)
	if place.turn != nil {
		select {
		case <-place.turn:
		case <-ctx.Done():
			return nil, c.gaveUp(ctx, name, c.lines.last(name))
		case <-c.done:
			return nil, c.gaveUp(ctx, name, nil)
		}
	}
	w := waiter{client: c, name: name, poll: pollFirst, ear: c.engine.Overhear(name)}
	defer w.close()
	for {
		asked := time.Now()
		l, err := c.inTurn(ctx, name, window.Wait{}, func() (*Lock, error) {
			asked = time.Now()
			return c.try(ctx, name, o, &w, called, asked.Add(c.tryTakes(o)))
		})
		if err == nil {
			if w.ear != nil {
				w.ear.Keep()
			}
			return l, nil
		}
		took := time.Since(asked)
		var round *RoundError
		switch {
		case !errors.As(err, &round) || errors.Is(err, ErrClosed):
			return nil, err
		case ctx.Err() != nil:
			if said := c.lines.last(name); said != nil && errors.Is(round, ctx.Err()) {
				round = said // an attempt that was cut short is no answer
			}
			return nil, c.gaveUp(ctx, name, round)
		}
		c.lines.told(name, round)
		w.refused(round, took)
		if last, again := w.wait(ctx, round); !again {
			return nil, c.gaveUp(ctx, name, last)
		}
	}
}

// gaveUp is the error of a wait that the context or Close ended, after the last answer.
func (c *Client) gaveUp(ctx context.Context, name string, last *RoundError) error {
	select {
	case <-c.done:
		return &RoundError{Op: "lock", Name: name, kinds: []error{ErrClosed}}
	default:
	}
	e := c.roundError("lock", name, nil)
	kind := ErrNoQuorum
	if last != nil {
		*e = *last
		if errors.Is(last, ErrHeld) {
			kind = ErrHeld
		}
	} else {
		e.detail = "the context ended before the nodes were asked"
	}
	e.kinds = []error{kind, ctx.Err()}
	return e
}

const (
	// leastPause and mostPause are the times between two tries while there is no quorum.
	leastPause = 20 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

// sayWaits logs until when calls wait for nodes that give no vote yet: once, however many do.
func (c *Client) sayWaits(name string, left time.Duration) {
	if left <= 0 {
		return
	}
	until := c.clock.Now().Time().Add(left)
	if last := c.waitsUntil.Load(); until.Sub(time.Unix(0, last)).Abs() < time.Second ||
		!c.waitsUntil.CompareAndSwap(last, until.UnixNano()) {
		return
	}
	c.log.Warn("redlock: Lock waits for nodes whose memory is new; an operator who knows that they"+
		" hold no forgotten lock can say Admit", "name", name, "until", until)
}

// A waiter decides when the contender of a name asks again.
type waiter struct {
	client *Client
	name   string
	ear    *quorum.Ear
	poll   time.Duration
	pause  time.Duration
	round  time.Duration // how long a try takes at the least
	rank   rank
	freed  string // the release that the rank last moved up for
	looked bool   // at one node
	rested bool   // a release ended the pause after split votes

	// The lock changed hands and no release was heard, as holders free it that tell nobody: the pause
	// between two tries; 0: it did not. And whose it was at the last try.
	unheard time.Duration
	rival   string
	doubts  bool // a look found it in other hands, perhaps
}

func (w *waiter) close() {
	if w.ear != nil {
		w.ear.Close()
	}
}

// wait returns true when it is worth asking again, false when ctx or the client ended, and what is
// known by then. Where only the clock wakes it, it first makes sure that something has changed: a
// try costs two commands a node.
func (w *waiter) wait(ctx context.Context, last *RoundError) (*RoundError, bool) {
	if w.doubts && w.ear != nil && errors.Is(last, ErrHeld) && last.rival != w.rival {
		w.unheard = pollUnheard
	}
	w.doubts = false
	answer := last // of a majority
	for {
		listens := w.ear != nil && errors.Is(last, ErrHeld)
		ends := time.Now().Add(last.Remaining)
		woken := byRelease
		if !w.rested {
			woken = w.sleep(ctx, last)
		}
		w.rested = false
		switch {
		case woken == byEnd:
			return answer, false
		case woken == byRelease:
			w.unheard = 0
			if told := w.ear.Told(); told != "" && told == w.freed && told != last.rival {
				continue // more nodes told of what others have made use of since
			}
			taken, ended := w.giveWay(ctx, last)
			if taken == nil {
				return answer, ended != byEnd
			}
			last = taken
			// One node may be wrong: it is no answer, and the next time all are asked, and soon.
			w.poll, w.looked = pollFirst, true
			w.meetsOther(taken.rival)
			continue
		case woken == byReady || !listens || w.unheard > 0:
			return answer, true
		}
		still := w.stillHeld(ctx, last, ends)
		if still == nil {
			return answer, ctx.Err() == nil
		}
		last, answer = still, still
		w.client.lines.told(w.name, answer)
	}
}

// stillHeld is last, brought up to date, if the same holder still has the lock; nil if not, or if
// that cannot be said. At first, when the pauses are short, one node is asked, any: it may be one
// whose clock is wrong, or that missed the release, so the next time all are. That the holder's keys
// were renewed only a majority can say in any case.
func (w *waiter) stillHeld(ctx context.Context, last *RoundError, ends time.Time) *RoundError {
	still := *last // others may have the pointer
	if last.Remaining < noEnd {
		still.Remaining = time.Until(ends)
	}
	if still.Remaining > 0 && !w.looked {
		w.looked = true
		seen := w.client.engine.Look(ctx, w.name)
		if seen.Err != nil {
			return nil
		}
		if seen.Holder != last.rival {
			w.doubts = true
			return nil
		}
		if seen.Left >= 0 { // less of it than was known: all are asked then
			still.Remaining = min(still.Remaining, seen.Left)
		}
		return &still
	}
	w.ear.Recount()
	seen, err := w.client.engine.InspectMost(ctx, w.name)
	if err != nil {
		return nil
	}
	holder, votes, left := quorum.Strongest(seen)
	if holder != last.rival || votes < last.Quorum || left <= 0 {
		w.doubts = still.Remaining > 0 // else the keys have ended
		return nil
	}
	still.Votes, still.Errs, still.Remaining = 0, nil, left
	return &still
}

// A wakening is what ended a sleep.
type wakening uint8

const (
	byClock wakening = iota
	byRelease
	byReady // the subscription stands
	byEnd   // of ctx or the client
)

// sleep waits until something may have changed, and says what.
func (w *waiter) sleep(ctx context.Context, last *RoundError) wakening {
	var ready <-chan struct{}
	var timeout time.Duration
	switch {
	case errors.Is(last, ErrHeld) && w.ear == nil:
		// Listen, and ask once more: the lock may be freed between the refusal and the moment
		// from which releases are heard.
		w.ear = w.client.engine.Listen(w.name)
		ready, timeout = w.ear.Ready(), w.client.cfg.NodeTimeout
	case errors.Is(last, ErrHeld) && w.unheard > 0:
		w.pause = 0
		timeout = w.unheard/2 + rand.N(w.unheard)
		if w.unheard = 2 * w.unheard; last.rival != w.rival {
			w.unheard = pollUnheard
		} else if w.unheard > pollFirst { // it stays in one hand
			w.unheard, w.poll, w.looked = 0, pollFirst, false
		}
	case errors.Is(last, ErrHeld):
		w.pause = 0
		timeout = w.poll
		w.poll = min(pollGrows*w.poll, pollMost)
	default:
		w.pause = min(max(2*w.pause, leastPause), mostPause)
		timeout = w.pause
		if last.waits { // else Remaining is a rival's, and nobody must be told to say Admit
			w.client.sayWaits(w.name, last.Remaining)
		}
	}
	if last.Remaining > 0 || errors.Is(last, ErrHeld) {
		// Held with nothing left: the key ends within this millisecond. Without an end it has more
		// left than can be added to.
		timeout = min(timeout, last.Remaining) + time.Millisecond
	}
	w.rival = last.rival
	if w.ear != nil {
		w.ear.Await(last.rival)
	}
	return w.listen(ctx, timeout, ready)
}

// rest is the pause after split votes. A release ends it and the try: who goes first then is for the
// ranks to say. It is no news if it is the one that the try was made for, which more nodes tell of.
func (w *waiter) rest(ctx context.Context, d time.Duration) bool {
	until := time.Now().Add(d)
	for {
		woken := w.listen(ctx, time.Until(until), nil)
		if woken == byRelease {
			if told := w.ear.Told(); told != "" && told == w.freed {
				continue
			}
		}
		w.rested = woken == byRelease
		return woken == byClock
	}
}

// listen waits for the next release, if somebody tells of it, and for ready: for d at most.
func (w *waiter) listen(ctx context.Context, d time.Duration, ready <-chan struct{}) wakening {
	var freed <-chan struct{}
	if w.ear != nil {
		freed = w.ear.Freed()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ready:
		return byReady
	case <-freed:
		return byRelease
	case <-timer.C:
		return byClock
	case <-ctx.Done():
	case <-w.client.done:
	}
	return byEnd
}

// refused takes in that a try did not get the lock.
func (w *waiter) refused(round *RoundError, took time.Duration) {
	held := errors.Is(round, ErrHeld)
	if (held || round.split) && (w.round == 0 || took < w.round) { // else it may have failed at once
		w.round = took
	}
	met := round.split || held && quorum.Rank(round.rival) != quorum.Unranked
	if w.rank.refused(met) {
		w.ear.Recount() // there may be more than were known
	}
	if held && w.freed != "" && round.rival != w.rival {
		w.meetsOther(round.rival)
	}
}

// meetsOther takes in who has the lock after a release was heard: another library's holder may free it
// and tell nobody.
func (w *waiter) meetsOther(rival string) {
	if quorum.Identity(rival) == rival {
		w.unheard = pollUnheard
	}
}

// giveWay lets those go first whose rank is before the waiter's, after a release. It returns nil if
// the waiter is to ask now, else what last becomes, because one of them seems to have the lock by now;
// and byEnd if ctx or the client ended.
func (w *waiter) giveWay(ctx context.Context, last *RoundError) (*RoundError, wakening) {
	w.hear()
	until := time.Now().Add(w.rank.standBack(w.round))
	for left := time.Until(until); left > 0; left = time.Until(until) {
		switch w.listen(ctx, left, nil) {
		case byEnd:
			return nil, byEnd
		case byRelease: // one of them has had it
			// Who comes in again and again without a rank does not begin the time anew.
			before := w.rank.ahead
			if w.hear(); w.rank.ahead != before {
				until = time.Now().Add(w.rank.standBack(w.round))
			}
		}
	}
	var taken *RoundError
	if w.rank.ahead > 0 {
		taken = w.taken(ctx, last)
	}
	if taken != nil && quorum.Rank(taken.rival) == quorum.Unranked {
		w.rank.intruded(w.ear.Crowd())
	}
	w.rank.come = taken == nil
	return taken, byClock
}

// hear moves the rank up for the release that was heard last, once.
func (w *waiter) hear() {
	told := w.ear.Told()
	if told != "" && told == w.freed {
		return
	}
	w.freed = told
	w.rank.heard(quorum.Rank(told), w.ear.Crowd(), w.ear.Had())
}

// leastLook is how long a look may take where rounds are short.
const leastLook = 10 * time.Millisecond

// taken asks one node who has the lock after the release that was heard last. It returns nil if that
// is nobody, the one who has freed it, or not known soon: then those before the waiter are gone, or
// that node has missed something.
func (w *waiter) taken(ctx context.Context, last *RoundError) *RoundError {
	w.ear.Recount()
	ctx, cancel := context.WithTimeout(ctx, max(roundsEach*min(w.round, mostStandBack), leastLook))
	defer cancel()
	seen := w.client.engine.Look(ctx, w.name)
	freed := w.freed
	if freed == "" {
		freed = last.rival
	}
	if seen.Err != nil || seen.Holder == "" || seen.Holder == freed {
		return nil
	}
	next := w.client.roundError(last.Op, last.Name, nil)
	next.kinds = []error{ErrHeld}
	holder, _, left := quorum.Strongest([]quorum.Inspection{seen})
	next.Holder, next.rival, next.Remaining = quorum.Identity(holder), holder, left
	return next
}
