package quorum

import (
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/internal/script"
)

// An Extension is what became of a request to prolong a lock.
type Extension struct {
	Verdict   HoldVerdict
	Started   clock.Reading // a new validity counts from here
	Tally     Tally
	Errs      []NodeErr
	Holder    string        // the rival found on the most nodes
	Remaining time.Duration // what it has left
	Voters    Set           // Swap: nodes that handed the key over
	Err       error         // Swap: the context's error, if that ended it
}

// HoldVerdict is what the nodes said of a lock that was held.
type HoldVerdict uint8

// The verdicts on a held lock.
const (
	HoldUnknown HoldVerdict = iota // too few answers either way
	HoldKept                       // a majority still had our key
	HoldGone                       // on a majority it is nobody's or a rival's
)

// DecideHold says what the answers to an extend amount to. Only nodes that still held our key
// count for it; planted ones do not, because what they say of the past is nothing.
func DecideHold(t Tally, quorum int) HoldVerdict {
	switch {
	case t.Ours >= quorum:
		return HoldKept
	case t.Nobody+t.Rival >= quorum:
		return HoldGone
	}
	return HoldUnknown
}

// Extend asks all nodes that may have the key to prolong it. It does not block. decided is called
// once, as soon as the verdict is certain; complete once, when all nodes have answered or timed
// out, with those that answered that they have no key at all: they can be planted. Both run on
// the engine's goroutines and must not block.
func (e *Engine) Extend(h Hold, ttl time.Duration, keepRegister bool,
	decided func(Extension), complete func(missing Set),
) {
	started := e.set.Clock.Now()
	p := &poll{engine: e, question: askExtend}
	p.decided = func(p *poll) {
		x := Extension{Started: started}
		x.Tally, x.Errs = p.sum()
		x.Verdict = DecideHold(x.Tally, e.Quorum())
		if x.Verdict != HoldKept {
			x.Holder, x.Remaining = p.rival()
		}
		decided(x)
	}
	p.complete = func(p *poll) {
		var missing Set
		for i := range p.answers {
			a := &p.answers[i]
			if a.err == nil && a.letter() != script.Done && a.letter() != script.Rival {
				missing |= 1 << i // nobody's, or not known to have the key
			}
		}
		complete(missing)
	}
	p.send(e.extendMessage(h.Name, h.Token, ttl, keepRegister), h.Voters, h.Touched,
		e.messageTimeout(ttl))
}

// Plant gives the lock's key to nodes that miss it, under all rules of an acquire, and tells which
// it was sent to: failing nodes are left for a later time. It does not block. What comes of it
// counts for nothing at the time; told hears, after Plant has returned, of each node that it was
// sent to: of those that granted, and only then may the node's word count in a later extend; of
// those that have the key without a vote; and where it may still arrive.
func (e *Engine) Plant(
	h Hold, ttl time.Duration, fencing uint64, nodes Set, told func(News),
) (planted Set) {
	p := &planting{engine: e, hold: h, told: told, sending: true}
	command := e.acquireMessage(new(acquireParcel), h.Name, &h.Token, ttl, &fencing)
	deadline := e.moment(time.Now().Add(e.messageTimeout(ttl)))
	for i, l := range e.lanes {
		if nodes.Has(i) && !l.isFailing() {
			planted |= 1 << i
			e.count.Plants.Add(1)
			l.submit(&request{command: command, to: p, node: int16(i), deadline: deadline, guarded: true})
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sending = false
	return planted &^ p.unsent
}

// A planting takes the answers to plants.
type planting struct {
	engine *Engine
	hold   Hold
	told   func(News)

	mu      sync.Mutex // guards all below
	sending bool       // Plant has not returned: its caller must not be called back
	unsent  Set        // meanwhile
}

func (p *planting) answer(r *request, got answer) {
	if got.late || got.unsent && p.keeps(r.node) {
		return
	}
	void, node := got.void, Set(1)<<r.node
	news := News{Landed: node}
	if got.err == nil {
		reply, err := script.ParseAcquire(got.reply)
		void = err == nil && (reply.Letter == script.Done || reply.Letter == script.Ours)
		if void && p.engine.waits(reply, nil) == nil {
			news.Granted, void = node, false
		}
	}
	// An answer to the plant is not one to what was sent before.
	if got.err == nil && !got.twice || void || neverRan(got) {
		news.Sure = node &^ p.hold.Unsure
	}
	if void {
		news.Barred = node
	}
	p.told(news)
	if void {
		p.takeBack(node)
	}
}

// keeps reports whether Plant itself will tell that nothing was sent.
func (p *planting) keeps(node int16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sending {
		p.unsent |= 1 << node
	}
	return p.sending
}

// takeBack frees the key on a node that has it without a vote. It must not stay there (protocol
// review, P1).
func (p *planting) takeBack(node Set) {
	hold := p.hold
	hold.Touched = node // and nowhere else: the lock is held
	p.engine.release(hold, func() Set { return hold.Unsure & node }, nil,
		func(sure Set) { p.told(News{Freed: sure, Sure: sure}) })
}

// A Freeing is what became of a release.
type Freeing struct {
	Tally     Tally
	Errs      []NodeErr
	Holder    string
	Remaining time.Duration
}

// Release frees the lock on all nodes that may have the key. It does not block; decided, if not
// nil, is called once, as soon as a majority is known to be free of our key, a rival has a
// majority, or all have answered. Nodes that did not confirm are asked again in the background
// until the keys have ended. unsure, if not nil, tells then what h.Unsure is by then: mostly
// nothing, as the release goes to a node behind what was out.
func (e *Engine) Release(h Hold, unsure func() Set, decided func(Freeing)) {
	if unsure == nil {
		unsure = func() Set { return h.Unsure }
	}
	e.release(h, unsure, decided, nil)
}

// A releasePoll has room for its message, so that a release is one allocation.
type releasePoll struct {
	poll
	parcel releaseParcel
}

// release is Release, with complete, if not nil, told which nodes have confirmed for good: when all
// have answered, and later of each that did not yet.
func (e *Engine) release(
	h Hold, unsure func() Set, decided func(Freeing), complete func(sure Set),
) {
	until, touched := time.Now().Add(h.TTL), h.Touched
	room := &releasePoll{poll: poll{engine: e, question: askRelease}}
	p, message := &room.poll, e.releaseMessage(&room.parcel, h.Name, h.Token, h.Keep)
	p.decided = func(p *poll) {
		if decided == nil {
			return
		}
		f := Freeing{}
		f.Tally, f.Errs = p.sum()
		if f.Tally.Rival > 0 {
			f.Holder, f.Remaining = p.rival()
		}
		decided(f)
	}
	p.complete = func(p *poll) {
		unsure := unsure()
		var sure Set
		for i := range p.answers {
			a := &p.answers[i]
			if !touched.Has(i) {
				continue // not asked: the key there may be wanted
			}
			// Where an earlier message may still arrive, no answer is the last word.
			var settled func()
			if complete != nil {
				settled = func() { complete(1 << i) }
			}
			switch {
			case unsure.Has(i):
				p.engine.lanes[i].owe(debt{command: message, until: until, settled: settled,
					wanted: wantedUnsure})
			case a.err != nil:
				p.engine.lanes[i].owe(debt{command: message, until: until, settled: settled})
			default:
				sure |= 1 << i
			}
		}
		if complete != nil && sure != 0 {
			complete(sure)
		}
	}
	p.send(message, touched, 0, e.set.NodeTimeout)
}
