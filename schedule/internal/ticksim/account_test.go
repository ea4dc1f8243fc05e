package ticksim

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/ticktest"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/schedule"
)

// An account is what happened, and what it says about each tick that did not run.
type account struct {
	*world
	record ticktest.Record

	mu        sync.Mutex // guards below
	processes map[string]*process
	ticks     map[tickID]*history
	inTheWay  map[asker]string // owner of the run lock that the process did not get last
	nodesBad  []span           // when a node failed, or gave no vote yet
	errs      []string
}

type tickID struct {
	job string
	at  int64 // ms
}

func (id tickID) String() string {
	return id.job + " at " + time.UnixMilli(id.at).UTC().Format(time.DateTime)
}

// A history is what the nodes and replicas saw of a tick.
type history struct {
	marks   map[mark]uint64 // where each was made, a bit a node
	when    map[mark]time.Time
	holder  string // owner of the run lock that was in the way, when it was passed over
	reasons map[string]int
}

// A mark is somebody's commit of a tick.
type mark struct{ owner, state string }

func newAccount(w *world) *account {
	return &account{world: w, processes: make(map[string]*process),
		ticks: make(map[tickID]*history), inTheWay: make(map[asker]string)}
}

func (a *account) born(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.processes[p.name] = p
}

// of is the history of a tick. Called with a.mu held.
func (a *account) of(id tickID) *history {
	h := a.ticks[id]
	if h == nil {
		h = &history{marks: make(map[mark]uint64), when: make(map[mark]time.Time),
			reasons: make(map[string]int)}
		a.ticks[id] = h
	}
	return h
}

// executed sees what node i was asked: commits that it put on record, and whose run lock was in
// whose way.
func (a *account) executed(i int, e fakenode.Executed) {
	switch {
	case e.Script == "acquire":
		a.asked(e)
		return
	case e.Script != "commit" || e.Reply != "+":
		return
	}
	job := strings.TrimPrefix(e.Args[0], "ql:job:")
	at, _ := strconv.ParseInt(e.Args[3], 10, 64)
	m := mark{e.Args[2], e.Args[5]}
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.of(tickID{job, at})
	h.marks[m] |= 1 << i
	h.when[m] = time.Now()
	if m.state == "skip" {
		h.holder = a.inTheWay[asker{job, quorum.Identity(m.owner)}]
	}
}

// An asker is a process that wants the run lock of a job.
type asker struct{ job, process string }

// asked sees requests for run locks, several in one call or one, with keys and tokens among the
// arguments.
func (a *account) asked(e fakenode.Executed) {
	isToken := func(arg string) bool { return strings.HasPrefix(arg, "ql1:") }
	for _, key := range e.Args {
		job, ok := strings.CutPrefix(key, "ql:run:")
		holder, held := e.Node.Get(key)
		if !ok || !held || slices.Contains(e.Args, holder) {
			continue
		}
		by := e.Args[slices.IndexFunc(e.Args, isToken)]
		a.mu.Lock()
		a.inTheWay[asker{job, quorum.Identity(by)}] = holder
		a.mu.Unlock()
	}
}

// begins wants a run's tick on record as its process's, on a majority of the nodes, when it begins.
func (a *account) begins(process string, id tickID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.of(id); !h.ran(process, len(a.nodes)) {
		a.Errorf("%v began at %s and was not on record: marks %v", id, process, h.marks)
	}
}

// ran reports whether a process had put the tick on record as one that it runs, and has not passed
// it over since.
func (h *history) ran(process string, nodes int) bool {
	for m := range h.marks {
		if m.state == "run" && quorum.Identity(m.owner) == process && h.decided(m, nodes) &&
			!h.decided(mark{m.owner, "skip"}, nodes) {
			return true
		}
	}
	return false
}

// decided reports whether a mark was made on a majority.
func (h *history) decided(m mark, nodes int) bool {
	return bits.OnesCount64(h.marks[m]) >= quorum.Majority(nodes)
}

// skipped is told of ticks that a replica did not run.
func (a *account) skipped(e schedule.TickEvent) {
	reason := "other: " + e.Err.Error()
	for _, err := range []error{schedule.ErrTickTaken, schedule.ErrTickUndecided,
		schedule.ErrTickTooEarly, schedule.ErrTickTooLate} {
		if errors.Is(e.Err, err) {
			reason = err.Error()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(tickID{e.Tick.Job, e.Tick.At.UnixMilli()}).reasons[reason]++
}

// nodeFails begins a time in which a node is not counted on.
func (a *account) nodeFails(i int) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := len(a.nodesBad)
	a.nodesBad = append(a.nodesBad, span{from: time.Now(), what: fmt.Sprint("node ", i)})
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.nodesBad[at].to = time.Now()
	}
}

// Helper and Errorf make an account a ticktest.TB.
func (a *account) Helper() {}

// Errorf keeps what was wrong. Called with a.mu held.
func (a *account) Errorf(format string, args ...any) {
	a.errs = append(a.errs, fmt.Sprintf(format, args...))
}

// close looks at every tick that was due, and returns what was wrong.
func (a *account) close(to time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Once(a)
	a.record.Ordered(a)
	due, missed := 0, 0
	for _, j := range a.jobs() {
		all := j.due(a.from, to)
		a.expected(j, all)
		due += len(all)
		for _, at := range a.record.Missed(j.name, all) {
			missed++
			a.miss(tickID{j.name, at.UnixMilli()})
		}
	}
	a.counts.due.Add(int64(due))
	a.counts.missed.Add(int64(missed))
	a.counts.ran.Add(int64(len(a.record.Runs(""))))
	a.counts.twice.Add(a.again())
	return a.errs
}

// again is how many runs were of a tick that had run already.
func (a *account) again() (again int64) {
	seen := make(map[tickID]bool)
	for _, run := range a.record.Runs("") {
		id := tickID{run.Job, run.At.UnixMilli()}
		if seen[id] {
			again++
		}
		seen[id] = true
	}
	return again
}

// expected wants no run at an instant that was not due; those before and after the period may be.
func (a *account) expected(j jobPlan, due []time.Time) {
	for _, run := range a.record.Runs(j.name) {
		if run.At.After(a.from) && !run.At.After(due[len(due)-1]) &&
			!slices.ContainsFunc(due, run.At.Equal) {
			a.Errorf("ran at an instant that was not due: %v", run)
		}
	}
}

// miss finds out why a tick did not run. What the design does not allow is an error.
func (a *account) miss(id tickID) {
	why, lawful := a.why(id)
	a.counts.reason(why)
	if a.calm || !lawful {
		h := a.of(id)
		a.Errorf("%v did not run: %s; marks %v, replicas say %v", id, why, h.marks, h.reasons)
	}
}

// grace is that of all jobs here.
const grace = 30 * time.Second

func (a *account) why(id tickID) (reason string, lawful bool) {
	h := a.of(id)
	at := time.UnixMilli(id.at)
	partial := false
	for m := range h.marks {
		if m.state != "skip" || !h.decided(m, len(a.nodes)) {
			continue
		}
		if what := a.lostBefore(h, m.owner); what != "" {
			return "winner lost after its commit (" + what + "), and passed over later", true
		}
		return a.whyPassed(id, h)
	}
	for m := range h.marks {
		p := a.processes[quorum.Identity(m.owner)]
		what := p.ailed(h.when[m].Add(-2*time.Second), h.when[m].Add(2*time.Second))
		switch {
		case !h.decided(m, len(a.nodes)):
			partial = true
		case what == "":
			return "committed by a replica that was well", false
		default:
			return "winner lost after its commit (" + what + ")", true
		}
	}
	failing := during(a.nodesBad, at.Add(-mostSkew), at.Add(grace))
	switch {
	case partial && failing:
		return "undecided until Grace: a mark of one that is gone, and nodes not read", true
	case failing && len(h.reasons) > 0:
		return "undecided until Grace: nodes failing", true
	}
	return "nobody knows", false
}

// lostBefore is what ailed a claimer that had the tick on record before the one that passed it
// over: it may have asked for the run lock, and what it left there was in the way.
func (a *account) lostBefore(h *history, passedBy string) string {
	for m := range h.marks {
		if m.state != "run" || m.owner == passedBy || !h.decided(m, len(a.nodes)) {
			continue
		}
		at := h.when[m]
		return a.processes[quorum.Identity(m.owner)].ailed(at.Add(-2*time.Second), at.Add(2*time.Second))
	}
	return ""
}

// whyPassed is why a tick was passed over: whose run lock was in the way.
func (a *account) whyPassed(id tickID, h *history) (reason string, lawful bool) {
	name := quorum.Identity(h.holder)
	p := a.processes[name]
	if p == nil {
		return "passed over, and no run lock was in the way", false
	}
	at := time.UnixMilli(id.at)
	for _, run := range a.record.Runs(id.job) {
		under := run.Replica == name && run.Began.Before(at.Add(grace)) &&
			(run.Ended.IsZero() || run.Ended.After(at.Add(-mostSkew)))
		if under && p.ailed(run.Began, at.Add(grace)) == "" {
			return "passed over: a run was under way", true
		} else if under {
			return "passed over: a lost replica's run, until its run lock ended", true
		}
	}
	if a.committedBefore(name, id) && p.ailed(at.Add(-lockLife), at.Add(grace)) != "" {
		return "passed over: a lost replica's run that had not begun, until its run lock ended", true
	}
	// The commit comes before the run lock so that this cannot be.
	return "passed over: run lock of a claimer that never committed (" +
		p.ailed(at.Add(-time.Minute), at.Add(grace)) + ")", false
}

// lockLife is longer than a run lock lives that nobody renews.
const lockLife = time.Minute

// committedBefore reports whether a process had an earlier tick of the job on record, so lately
// that it may have got the run lock for it. A tick in whose own way it was does not count.
func (a *account) committedBefore(name string, id tickID) bool {
	for other, h := range a.ticks {
		if other.job != id.job || other.at >= id.at || id.at-other.at > lockLife.Milliseconds() {
			continue
		}
		if h.ran(name, len(a.nodes)) {
			return true
		}
	}
	return false
}
