package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/script"
)

// A Claim is what an attempt asks for.
type Claim struct {
	Name  string
	Token string // owner token, fresh for every attempt (protocol review, rule 1)
	TTL   time.Duration
	Until time.Time // monotonic: when the attempt ends at the latest, whatever is out then

	// A claim for a tick: the instant in ms, and how long the job's marks live. What the nodes
	// know of the tick comes with their votes, and none votes before its clock shows the instant.
	Tick int64
	Life time.Duration
}

// An attempt is one try for a lock: one owner token, one first byte that its validity counts from,
// and as many messages as the votes make necessary.
type attempt struct {
	engine   *Engine
	token    string
	ttl      time.Duration
	until    time.Duration // see Engine.moment
	parcel   acquireParcel // what is asked
	proposed uint64
	started  clock.Reading
	wake     chan struct{} // something to decide on
	tick     *tickVotes    // nil: a lock is asked for

	mu      sync.Mutex // guards all below
	over    bool
	won     bool // no vote is taken back any more
	onLate  func(News)
	votes   []Vote
	ballots []ballot
}

// An attemptOfFive has room for what an attempt at a few nodes needs, so that it is one allocation.
type attemptOfFive struct {
	attempt
	votes   [5]Vote
	ballots [5]ballot
}

// Acquire makes one attempt at a lock. It returns as soon as the outcome is certain; answers that
// come later are still dealt with. It blocks until claim.Until or the end of ctx at the latest.
//
// Contenders that split the votes sort it out among themselves: the one with the most nodes stays
// and asks the others' nodes again, the rest give theirs back and end with Split. So contention
// ends with a winner, without random waiting.
func (e *Engine) Acquire(ctx context.Context, claim Claim) Outcome {
	a := e.newAttempt(claim)
	deadline := a.deadline()
	for i := range a.ballots {
		a.ask(i, &a.ballots[i].request, deadline)
	}
	verdict, err := a.await(ctx)
	if verdict == Won {
		return a.seal(ctx)
	}
	return a.giveUp(verdict, err)
}

func (e *Engine) newAttempt(claim Claim) *attempt {
	now := e.set.Clock.Now()
	n := len(e.lanes)
	room := &attemptOfFive{attempt: attempt{
		engine: e, token: claim.Token, ttl: claim.TTL, until: max(e.moment(claim.Until), 0),
		started: now, proposed: e.propose(now), wake: make(chan struct{}, 1),
	}}
	a := &room.attempt
	if n <= len(room.votes) {
		a.votes, a.ballots = room.votes[:n], room.ballots[:n]
	} else {
		a.votes, a.ballots = make([]Vote, n), make([]ballot, n)
	}
	if claim.Tick != 0 {
		a.parcel.Command = *e.claimMessage(claim, a.proposed)
		a.tick = &tickVotes{instant: claim.Tick, known: make([]Read, n)}
	} else {
		e.acquireMessage(&a.parcel, claim.Name, &a.token, claim.TTL, &a.proposed)
	}
	return a
}

// messageTimeout is how long one answer may take: a short lock shortens its rounds.
func (e *Engine) messageTimeout(ttl time.Duration) time.Duration {
	return min(e.set.NodeTimeout, max(ttl/4, time.Millisecond))
}

// deadline is when a message that is sent now has to be answered.
func (a *attempt) deadline() time.Duration {
	e := a.engine
	return min(e.moment(time.Now())+e.messageTimeout(a.ttl), a.until)
}

// ask sends the message to node i.
func (a *attempt) ask(i int, r *request, deadline time.Duration) {
	*r = request{command: &a.parcel.Command, to: a, node: int16(i), deadline: deadline, guarded: true}
	a.mu.Lock()
	a.ballots[i].out, a.ballots[i].mayHold = r, true
	a.mu.Unlock()
	a.engine.lanes[i].submit(r)
}

// answer takes in what a node said.
func (a *attempt) answer(r *request, got answer) {
	if got.late {
		// The deadline has said that the node gives no vote; what it did is released, or belongs
		// to the lock if that was won.
		a.engine.count.Late.Add(1)
		return
	}
	reply, record, err := script.Reply{}, script.Record{}, got.err
	if err == nil {
		reply, record, err = a.parse(got.reply)
		err = a.engine.waits(reply, err)
		got.void = err != nil && (reply.Letter == script.Done || reply.Letter == script.Ours)
	}
	a.mu.Lock()
	b := &a.ballots[r.node]
	b.out = nil
	vote := b.take(reply, err, got)
	if a.tick != nil {
		a.tick.known[r.node] = a.readOf(reply, record, vote, got)
	}
	a.votes[r.node] = vote
	if vote.Kind == Granted {
		b.granted = groundsOf(reply)
	}
	void := a.revoke()
	if got.void {
		void |= 1 << r.node
	}
	for i := range a.ballots {
		a.ballots[i].barred = a.ballots[i].barred || void.Has(i)
	}
	news := News{Barred: void}
	if vote.Kind == Granted {
		news.Granted = 1 << r.node
	}
	if !b.unsure {
		news.Sure = 1 << r.node
	}
	onLate := a.onLate
	var needed []*request
	switch {
	case a.over:
		a.engine.count.Late.Add(1)
	case Decide(a.votes) != Undecided:
		select {
		case a.wake <- struct{}{}:
		default:
		}
	default:
		needed = a.engine.front.needed(len(a.ballots), func(i int) *request { return a.ballots[i].out })
	}
	a.mu.Unlock()
	a.engine.fetch(needed)
	a.engine.votes(int(r.node), vote.Kind != Failed)
	if onLate != nil {
		onLate(news)
	}
	if void != 0 {
		a.takeBack(void)
	}
}

// hold is the lock, as far as these nodes may have its key.
func (a *attempt) hold(touched Set) Hold {
	return Hold{Name: a.name(), Token: a.token, TTL: a.ttl, Touched: touched}
}

func (a *attempt) name() string { return a.engine.nameOf(a.parcel.Key) }

// revoke takes votes back that another node's answer made void: it told of a larger MaxTTL than was
// known when they were counted (protocol review, P6). A lock that was won stays won.
// Called with a.mu held.
func (a *attempt) revoke() (void Set) {
	if a.over || a.won {
		return 0
	}
	for i := range a.votes {
		b := &a.ballots[i]
		if a.votes[i].Kind != Granted {
			continue
		}
		if err := a.engine.mayNotVote(b.granted, false); err != nil {
			a.votes[i], b.err, b.unsure = Vote{Kind: Failed}, err, true
			if a.tick != nil {
				a.tick.known[i].Granted = false
			}
			void |= 1 << i
		}
	}
	return void
}

// parse reads a reply to the attempt's message.
func (a *attempt) parse(text string) (script.Reply, script.Record, error) {
	if a.tick != nil {
		return script.ParseClaim(text)
	}
	reply, err := script.ParseAcquire(text)
	return reply, script.Record{}, err
}

// takeBack frees the key on nodes that may have set it without having a vote. It must not stay
// there: an extend would take it for proof that the node remembers (protocol review, P1). Until a
// node has confirmed, no other message sets the key: the release might come after that.
func (a *attempt) takeBack(nodes Set) {
	unsure := func() Set { return a.unsure() & nodes }
	a.engine.release(a.hold(nodes), unsure, nil, func(sure Set) {
		a.mu.Lock()
		for i := range a.ballots {
			a.ballots[i].barred = a.ballots[i].barred && !sure.Has(i)
		}
		onLate := a.onLate
		a.mu.Unlock()
		if onLate != nil {
			onLate(News{Freed: sure, Sure: sure})
		}
	})
}

// await waits until there is nothing more to wait for, and sorts out split votes on the way.
func (a *attempt) await(ctx context.Context) (Verdict, error) {
	var timer *time.Timer
	var again <-chan time.Time // the leader's next message to the nodes it misses
	wait, yields := time.Millisecond, false
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for {
		select {
		case <-a.wake:
		case <-again:
			again = nil
			if a.engine.moment(time.Now()) >= a.until {
				return Split, nil
			}
			if !yields {
				a.askAgain(func(v Vote) bool { return v.Kind != Granted })
				continue
			}
		case <-ctx.Done():
			return Undecided, ctx.Err()
		case <-a.engine.stopped:
			return Undecided, ErrStopped
		}
		verdict, standing := a.judge()
		switch {
		case verdict == Undecided:
		case verdict == Won && a.needsAll():
		case verdict != Split:
			return verdict, nil
		case standing == Leads && again == nil:
			a.engine.count.Splits.Add(1)
			yields = false
			again = a.after(&timer, wait)
			wait = min(2*wait, 8*time.Millisecond)
		case standing == Trails:
			switch asked, failing := a.askSilent(); {
			case asked:
			case failing && !yields:
				// The silence has made the lane ask for a sign of life first.
				yields, again = true, a.after(&timer, 2*probeFirst)
			case again == nil || !yields:
				a.engine.count.Yields.Add(1)
				return Split, nil
			}
		}
	}
}

// after sets the timer, for the end of the attempt if that is earlier.
func (a *attempt) after(timer **time.Timer, d time.Duration) <-chan time.Time {
	d = min(d, a.until-a.engine.moment(time.Now())) // so that nobody returns late by it
	if *timer == nil {
		*timer = time.NewTimer(d)
	} else {
		(*timer).Reset(d)
	}
	return (*timer).C
}

// judge looks at all votes.
func (a *attempt) judge() (Verdict, Standing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	verdict := Decide(a.votes)
	if verdict != Split {
		return verdict, Unclear
	}
	return verdict, Stand(a.votes, a.token)
}

// askAgain repeats the message to those nodes which have no message out. The vote stays what the
// node last said, until it says something else.
func (a *attempt) askAgain(which func(Vote) bool) (asked bool) {
	a.mu.Lock()
	var nodes []int
	for i := range a.ballots {
		if a.ballots[i].out == nil && !a.ballots[i].barred && which(a.votes[i]) {
			nodes = append(nodes, i)
		}
	}
	a.mu.Unlock()
	deadline := a.deadline()
	for _, i := range nodes {
		a.engine.count.Repeats.Add(1)
		a.ask(i, new(request), deadline)
	}
	return len(nodes) > 0
}

// askSilent asks nodes that did not answer once more, before their votes are done without:
// otherwise one lost reply can make everybody give up (protocol review, V2). Some of them may be
// failing at the moment.
func (a *attempt) askSilent() (asked, failing bool) {
	a.mu.Lock()
	var nodes []int
	for i := range a.ballots {
		b := &a.ballots[i]
		silent := a.votes[i].Kind == Failed && b.out == nil && b.unsure && !b.again &&
			!b.barred && errors.Is(b.err, errNodeTimeout)
		switch {
		case !silent:
		case a.engine.lanes[i].isFailing():
			failing = true
		default:
			b.again = true
			a.votes[i].Kind = Pending
			nodes = append(nodes, i)
		}
	}
	a.mu.Unlock()
	deadline := a.deadline()
	for _, i := range nodes {
		a.ask(i, new(request), deadline)
	}
	return len(nodes) > 0, failing
}

// seal makes a majority into a lock: it settles the fencing token, in the normal case without
// another message, because all nodes took the proposed one.
func (a *attempt) seal(ctx context.Context) Outcome {
	a.mu.Lock()
	a.won = Decide(a.votes) == Won
	a.mu.Unlock()
	if !a.won { // revoked since it was judged
		return a.giveUp(NoQuorum, nil)
	}
	fencing, agreed := a.fencing()
	if !agreed {
		a.engine.count.Raises.Add(1)
		raised, errs, err := a.raise(ctx, fencing)
		if !raised {
			out := a.giveUp(NoQuorum, err)
			out.Errs, out.Unraised = errs, true
			return out
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	out := a.outcome(Won, nil)
	out.Fencing = fencing
	out.Touched, out.Unsure = a.traces()
	for i := range a.votes {
		if a.votes[i].Kind == Granted {
			out.Voters |= 1 << i
		}
	}
	out.attempt = a
	return out
}

// raise lifts the registers of a majority of all nodes, on each of which the lock's key is still
// ours, to the fencing token.
func (a *attempt) raise(ctx context.Context, fencing uint64) (bool, []NodeErr, error) {
	e := a.engine
	p := &poll{engine: e, question: askRaise}
	timeout := a.deadline() - e.moment(time.Now())
	message := e.raiseMessage(a.name(), a.token, fencing)
	if err := p.ask(ctx, message, 1<<len(e.lanes)-1, 0, timeout); err != nil {
		return false, nil, err
	}
	tally, errs := p.sum()
	return tally.Ours >= e.Quorum(), errs, nil
}

// traces are the nodes that may hold the key, and those of them where a message without an answer
// may still arrive. Called with a.mu held.
func (a *attempt) traces() (touched, unsure Set) {
	for i := range a.ballots {
		b := &a.ballots[i]
		if b.mayHold {
			touched |= 1 << i
		}
		if b.mayHold && (b.unsure || b.out != nil) {
			unsure |= 1 << i
		}
	}
	return touched, unsure
}

// fencing is the largest number that a node which granted has in its register, and whether a
// majority answered exactly that.
func (a *attempt) fencing() (largest uint64, agreed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := 0
	for i := range a.votes {
		if a.votes[i].Kind != Granted {
			continue
		}
		number := a.ballots[i].register
		if number == 0 {
			number = a.proposed
		}
		switch {
		case number > largest:
			largest, same = number, 1
		case number == largest:
			same++
		}
	}
	return largest, same >= Majority(len(a.votes))
}

// giveUp ends the attempt and frees what it may have taken.
func (a *attempt) giveUp(verdict Verdict, err error) Outcome {
	a.mu.Lock()
	a.over = true
	out := a.outcome(verdict, err)
	for i := range a.ballots {
		b := &a.ballots[i]
		if b.out != nil && a.engine.lanes[i].withdraw(b.out) {
			b.mayHold = b.unsure
		}
	}
	a.mu.Unlock()
	a.free()
	return out
}

// free frees the key on all nodes that may have it. The attempt is over.
func (a *attempt) free() {
	a.mu.Lock()
	touched, _ := a.traces()
	a.mu.Unlock()
	if touched != 0 {
		a.engine.release(a.hold(touched), a.unsure, nil, nil)
	}
}

// unsure are the nodes where an unanswered message may still bring the key. Asked when the release
// has been answered: it goes to a node behind what is out, most of which will have been answered.
func (a *attempt) unsure() Set {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, unsure := a.traces()
	return unsure
}
