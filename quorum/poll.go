package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// A Hold is a lock as the nodes know it.
type Hold struct {
	Name    string
	Token   string
	TTL     time.Duration // the longest that a key of it may still live
	Touched Set           // nodes that may have the key
	Unsure  Set           // of these, where an unanswered message may still bring it
	Keep    time.Duration // Release: the keys stay this long at the least
	Voters  Set           // of these, where its being there proves that the node remembers
}

// A Tally counts what nodes said of a key that was ours.
type Tally struct {
	Ours    int // done: prolonged, raised, freed
	Nobody  int
	Rival   int
	Twice   int // of Rival: to a message that had been sent before, which may have done it
	Failed  int
	Pending int
}

// A poll is one message about a held lock to all nodes that may have its key. Nobody waits for it
// by a goroutine of its own: it calls back.
type poll struct {
	engine   *Engine
	question *question
	decided  func(*poll) // called once, when there is enough or all have answered
	complete func(*poll) // called once, when all have answered

	mu      sync.Mutex // guards all below
	tally   Tally
	over    bool
	answers []pollAnswer
	room    [5]pollAnswer // for the answers of a few nodes
}

// A pollAnswer keeps what a node said as it came: mostly nobody looks at more than the letter.
type pollAnswer struct {
	request request
	said    string // empty: nothing yet, or err
	err     error
}

// letter is that of the answer, 0 if there is none.
func (a *pollAnswer) letter() byte {
	if a.said == "" {
		return 0
	}
	return a.said[0]
}

// reply is the answer to the question, taken apart; empty if there is none. Of a node that was not
// asked it may be empty, too: letter knows.
func (a *pollAnswer) reply(q *question) script.Reply {
	reply, _ := q.parse(a.said)
	return reply
}

// saidNobody is what counts as said by a node that was not asked because it has no key of ours.
var saidNobody = string(rune(script.Nobody))

// send asks the nodes in asked. Of the others, those in unknown count as failed, as they may have
// the key, and the rest as nobody's.
func (p *poll) send(command *Command, asked, unknown Set, timeout time.Duration) {
	n := len(p.engine.lanes)
	if n <= len(p.room) {
		p.answers = p.room[:n]
	} else {
		p.answers = make([]pollAnswer, n)
	}
	deadline := p.engine.moment(time.Now().Add(timeout))
	for i := range n {
		switch {
		case asked.Has(i):
			p.tally.Pending++
			p.answers[i].request = request{command: command, to: p, node: int16(i), deadline: deadline}
		case unknown.Has(i):
			p.tally.Failed++
		default:
			p.tally.Nobody++
			p.answers[i].said = saidNobody
		}
	}
	// From the first submit on answers may come in: what follows reads nothing they change.
	for i := range n {
		if asked.Has(i) {
			p.engine.lanes[i].submit(&p.answers[i].request)
		}
	}
	if asked == 0 {
		p.decided(p)
		if p.complete != nil {
			p.complete(p)
		}
	}
}

// ask sends, and waits until it is decided: at most for the timeout, or until ctx ends or the
// engine is stopped. Then the error says so, and answers that come later are still taken in.
func (p *poll) ask(
	ctx context.Context, command *Command, asked, unknown Set, timeout time.Duration,
) error {
	done := make(chan struct{})
	p.decided = func(*poll) { close(done) }
	p.send(command, asked, unknown, timeout)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.engine.stopped:
		return ErrStopped
	}
}

func (p *poll) answer(r *request, got answer) {
	if got.late {
		p.engine.count.Late.Add(1)
		return
	}
	reply, err := script.Reply{}, got.err
	if err == nil {
		reply, err = p.question.parse(got.reply)
	}
	p.mu.Lock()
	a := &p.answers[r.node]
	if a.err = err; err == nil {
		a.said = got.reply
	}
	p.tally.Pending--
	switch {
	case err != nil:
		p.tally.Failed++
	case reply.Letter == script.Rival:
		p.tally.Rival++
		if got.twice {
			p.tally.Twice++
		}
	case reply.Letter == script.Marked:
		p.tally.Failed++ // neither done nor another's
	case reply.Letter == script.Nobody:
		p.tally.Nobody++
	default:
		p.tally.Ours++
	}
	decides := !p.over && (p.tally.Pending == 0 || p.question.enough(p.tally, len(p.answers)))
	p.over = p.over || decides
	completes := p.tally.Pending == 0
	var needed []*request
	if !p.over {
		needed = p.engine.front.needed(len(p.answers), func(i int) *request {
			if a := &p.answers[i]; a.said == "" && a.err == nil {
				return &a.request
			}
			return nil
		})
	}
	p.mu.Unlock()
	p.engine.fetch(needed)
	if err != nil {
		p.engine.votes(int(r.node), false)
	}
	if decides {
		p.decided(p)
	}
	if completes && p.complete != nil {
		p.complete(p)
	}
}

// sum is the tally and the errors so far.
func (p *poll) sum() (Tally, []NodeErr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []NodeErr
	for i := range p.answers {
		if err := p.answers[i].err; err != nil {
			errs = append(errs, NodeErr{Node: i, Err: err})
		}
	}
	return p.tally, errs
}

// marked is how many nodes refused because of another's mark.
func (p *poll) marked() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.answers {
		if p.answers[i].letter() == script.Marked {
			n++
		}
	}
	return n
}

// voters are the nodes that said the key is ours.
func (p *poll) voters() (voters Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.answers {
		if p.answers[i].letter() == script.Done {
			voters |= 1 << i
		}
	}
	return voters
}

// silent are the nodes that were asked and have said nothing.
func (p *poll) silent() (silent Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.answers {
		if p.answers[i].letter() == 0 {
			silent |= 1 << i
		}
	}
	return silent
}

// rival is the owner token found on the most nodes, and how long it has until it has lost enough.
func (p *poll) rival() (string, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	votes, lefts := make([]Vote, len(p.answers)), make([]time.Duration, len(p.answers))
	free := 0
	for i := range p.answers {
		a := &p.answers[i]
		switch a.letter() {
		case script.Rival:
			reply := a.reply(p.question)
			votes[i], lefts[i] = Vote{Kind: Refused, Holder: reply.Holder}, reply.Left
		case script.Nobody:
			free++
		}
	}
	_, holder := strongest(votes)
	var rivals []time.Duration
	for i := range votes {
		if votes[i].Kind == Refused && votes[i].Holder == holder {
			rivals = append(rivals, lefts[i])
		}
	}
	return holder, untilFree(rivals, free, Majority(len(votes)))
}
