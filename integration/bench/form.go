package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A form is how much of the suite is run, and for how long.
type form struct {
	name  string
	about string        // what it has
	more  string        // what the full form has besides; "": nothing
	takes string        // how long a run is
	limit time.Duration // after which the run is given up

	rounds  int // of pairs and hand-offs
	oneNode bool

	pairs    []pairCell
	pairSpan time.Duration // of one contestant in one round

	handoffs    []handoffCell
	handoffSpan time.Duration
	processes   int // of one library, with all its clients between them, to hand off and to wait in
	waiting     int // waiters whose waiting alone is measured; 0: none
	waitSpan    time.Duration

	campaigns []campaign

	holdings []int // locks held
	holdTTL  time.Duration

	ticks      []tickCell
	tickRounds int

	outages []outageCell
}

// A trouble is what one of five nodes has.
type trouble string

const (
	oneDead   trouble = "one of five nodes dead"   // killed: its port refuses connections
	oneFrozen trouble = "one of five nodes frozen" // stopped: it takes connections, answers nothing
	twoDead   trouble = "two of five nodes dead"
	twoFrozen trouble = "two of five nodes frozen"
	oneSlow   trouble = "one of five nodes 50 ms away" // each round trip to it takes that much longer
	twoSlow   trouble = "two of five nodes 50 ms away"
)

// slowness is how much longer a round trip to a slow node takes.
const slowness = 50 * time.Millisecond

// nodes is how many of the five have the trouble.
func (t trouble) nodes() int {
	if t == twoDead || t == twoFrozen || t == twoSlow {
		return 2
	}
	return 1
}

// isSlow reports whether the trouble is one of the way, on nodes that are sound.
func (t trouble) isSlow() bool { return t == oneSlow || t == twoSlow }

// A pairCell is one place to measure lock + unlock in.
type pairCell struct {
	nodes, callers int
	delay          time.Duration // added to each round trip, half of it each way
	bare           bool          // the ceilings, too
	waits          bool          // of them the callers who wait, at least
	troubles       []trouble     // ours once more on nodes with each
}

// ideal is the time per pair if nothing cost any but the added delay: two round trips, of all
// callers at once.
func (c *pairCell) ideal() time.Duration { return 2 * c.delay / time.Duration(c.callers) }

// String is what tells the cell from others.
func (c pairCell) String() string {
	text := fmt.Sprintf("%d nodes, %s", c.nodes, countOf(c.callers, "caller"))
	if c.delay > 0 {
		text += fmt.Sprintf(", %v of added delay", c.delay)
	}
	return text
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A handoffCell is one place to measure hand-offs in: so many wait for one who holds, and all of
// them have so many clients of the library between them, over a way with so much added delay.
type handoffCell struct {
	waiters, clients int
	delay            time.Duration // of a round trip, half of it each way
}

// String is what tells the cell from others.
func (c handoffCell) String() string {
	text := fmt.Sprintf("%d waiters, %s", c.waiters, countOf(c.clients, "client"))
	if c.delay > 0 {
		text += fmt.Sprintf(", %v of added delay", c.delay)
	}
	return text
}

// processesOf is in how many processes these clients are: none has less than one.
func (f *form) processesOf(c handoffCell) int { return min(f.processes, c.clients) }

func inProcesses(n int) string {
	if n == 1 {
		return "one process"
	}
	return fmt.Sprintf("%d processes", n)
}

// A campaign is elections with one bound of the delays.
type campaign struct {
	most       time.Duration // of a message's delay, each way
	contenders []int
	elections  int // for each number of contenders
}

// forms are what -form chooses from.
var forms = []form{short, core, delayed, handed(), full()}

// short has the first targets, and what bounds them.
var short = form{
	name: "short", limit: 3 * time.Minute, rounds: 5, pairSpan: 700 * time.Millisecond,
	about: "lock + unlock with 1, 64 and 512 callers on five nodes, also with one node dead",
	more:  "all other workloads, and the libraries that ask one node",
	takes: "under 90 s",
	pairs: []pairCell{
		{nodes: 5, callers: 1, bare: true},
		{nodes: 5, callers: 64, bare: true, troubles: []trouble{oneDead}},
		{nodes: 5, callers: 512, bare: true, troubles: []trouble{oneDead}},
	},
}

// core has what a reader wants to know first.
var core = form{
	name: "core", limit: 15 * time.Minute, rounds: 5, oneNode: true,
	pairSpan: 700 * time.Millisecond,
	about: "lock + unlock with 1 to 512 callers, also with one node dead or frozen; hand-offs and" +
		" waiting; elections",
	more: "an added delay of 1 ms and 20 ms; three and seven nodes with 1, 8 and 512 callers; two nodes" +
		" in trouble, or nodes 50 ms away; hand-offs from afar; held locks; ticks; a node that is gone" +
		" for a minute",
	takes: "under 10 minutes",
	pairs: []pairCell{
		{nodes: 5, callers: 1, bare: true},
		{nodes: 5, callers: 8, bare: true},
		{nodes: 5, callers: 64, bare: true, troubles: []trouble{oneDead, oneFrozen}},
		{nodes: 5, callers: 512, bare: true, troubles: []trouble{oneDead, oneFrozen}},
		{nodes: 3, callers: 64, bare: true},
		{nodes: 7, callers: 64, bare: true},
	},
	handoffs:    []handoffCell{{2, 3, 0}, {16, 17, 0}, {16, 1, 0}, {256, 16, 0}},
	handoffSpan: time.Second, processes: 4,
	waiting: 16, waitSpan: 2 * time.Second,
	campaigns: []campaign{
		{most: 2 * time.Millisecond, contenders: []int{2, 3, 5, 10, 20}, elections: 100},
		{most: 20 * time.Millisecond, contenders: []int{2, 3, 5, 10, 20}, elections: 40},
	},
}

// delayed has lock + unlock over a slow network.
var delayed = form{
	name: "delay", limit: 8 * time.Minute, rounds: 5, pairSpan: 2 * time.Second,
	about: "lock + unlock with 1 ms and 20 ms of added delay",
	more:  "all that is measured without a delay",
	takes: "about 5 minutes",
	pairs: []pairCell{
		{nodes: 5, callers: 1, delay: time.Millisecond, waits: true},
		{nodes: 5, callers: 64, delay: time.Millisecond, waits: true},
		{nodes: 5, callers: 512, delay: time.Millisecond, waits: true},
		{nodes: 5, callers: 1, delay: targetDelay, waits: true},
		{nodes: 5, callers: 64, delay: targetDelay, waits: true},
		{nodes: 5, callers: 512, delay: targetDelay, waits: true},
	},
}

// handoffDelay makes the round trips what counts, and not how much the processors have to do for them.
// rueidislock takes a node that needs 20 ms for one that does not answer.
const handoffDelay = 10 * time.Millisecond

// farHandoffs are those over a slow network.
var farHandoffs = []handoffCell{{2, 3, handoffDelay}, {16, 17, handoffDelay}}

// handed has the hand-offs of core and those over a slow network, and nothing else.
func handed() form {
	f := core
	f.name, f.limit, f.pairs, f.campaigns = "handoff", 10*time.Minute, nil, nil
	f.about = "one name from holder to holder, also with 10 ms of added delay; waiting"
	f.more, f.takes = "all but hand-offs and waiting", "about 5 minutes"
	f.handoffs = slices.Concat(f.handoffs, farHandoffs)
	return f
}

// full has all there is: core, the slow network, more nodes in trouble, held locks and ticks.
func full() form {
	f := core
	f.name, f.limit, f.pairSpan = "full", 45*time.Minute, time.Second
	f.about, f.more, f.takes = "all there is", "", "about 25 minutes"
	f.pairs = nil
	for _, c := range core.pairs {
		if len(c.troubles) > 0 {
			c.troubles = []trouble{oneDead, oneFrozen, oneSlow, twoDead, twoFrozen, twoSlow}
		}
		f.pairs = append(f.pairs, c)
	}
	for _, nodes := range []int{3, 7} { // with 64 callers they are in core
		for _, callers := range []int{1, 8, 512} {
			f.pairs = append(f.pairs, pairCell{nodes: nodes, callers: callers})
		}
	}
	f.pairs = append(f.pairs, delayed.pairs...)
	f.handoffs = slices.Concat(f.handoffs, farHandoffs)
	f.holdings, f.holdTTL = []int{1000, 10_000, 100_000}, 10*time.Second
	f.ticks, f.tickRounds = []tickCell{
		{3, 1}, {3, 100}, {3, 5000}, {10, 1}, {10, 100}, {50, 1}, {50, 100},
	}, 3
	f.outages = []outageCell{
		{trouble: oneDead, callers: 512, span: time.Minute},
		{trouble: oneFrozen, callers: 512, span: time.Minute},
	}
	return f
}

// formNamed returns the form of that name, or an error that names those there are.
func formNamed(name string) (form, error) {
	var names []string
	for _, f := range forms {
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return form{}, fmt.Errorf("-form %q: there is %s", name, strings.Join(names, ", "))
}

// said is what a page says of its form, and of what the full one has besides; "": nothing.
func (f *form) said() string {
	switch {
	case f.about == "":
		return ""
	case f.more == "":
		return fmt.Sprintf("this is the %s form: %s", f.name, f.about)
	}
	return fmt.Sprintf("this is the %s form: %s. `make bench-full` has more: %s", f.name, f.about, f.more)
}

// nodes is how many healthy nodes the form needs.
func (f *form) nodes() int {
	most := 1
	for _, c := range f.pairs {
		most = max(most, c.nodes)
	}
	if len(f.handoffs)+len(f.campaigns)+len(f.holdings)+len(f.ticks) > 0 {
		most = max(most, usualNodes)
	}
	return most
}

// usualNodes are the nodes of everything but the pairs on fewer or more.
const usualNodes = 5

// troubles are those that any of the pairs needs.
func (f *form) troubles() []trouble {
	var all []trouble
	for _, c := range f.pairs {
		for _, t := range c.troubles {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

// clientsOf are the most that these hand-offs need of one library.
func clientsOf(cells []handoffCell) (most int) {
	for _, c := range cells {
		most = max(most, c.clients)
	}
	return most
}
