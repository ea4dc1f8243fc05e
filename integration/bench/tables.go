package main

import (
	"fmt"
	"slices"
	"time"
)

// tables are all that is printed, the targets first.
func (r *results) tables() []table {
	all := []table{r.targetTable()}
	if len(r.pairs) > 0 {
		all = append(all, r.pairTable())
	}
	if len(r.handoffs) > 0 {
		all = append(all, r.handoffTable())
	}
	if len(r.waits) > 0 {
		all = append(all, r.waitTable())
	}
	if len(r.elections) > 0 {
		all = append(all, r.electionTable())
	}
	if len(r.holdings) > 0 {
		all = append(all, r.holdingTable())
	}
	if len(r.ticks) > 0 {
		all = append(all, r.tickTable())
	}
	if len(r.outages) > 0 {
		all = append(all, r.outageTable())
	}
	return all
}

func (r *results) targetTable() table {
	t := table{title: "Targets",
		about: "What the project wants, and what this run came to. Ratios are medians of the ratios" +
			" of the rounds. redsync's best is, round by round, the faster of its two ways. The bound is" +
			" what the nodes or the way to them allow, measured in the same run.",
		header: []string{"target", "measured", "verdict", "bound"},
		words:  []bool{true, false, true, true}}
	for _, one := range r.targets() {
		t.add(one.claim, one.measuredAs(), one.verdict(), one.bound)
	}
	if len(r.handoffs) == 0 {
		t.add("hand-offs and waiting", "-", "not in this form (-form core)", "")
	}
	if len(r.elections) == 0 {
		t.add("elections", "-", "not in this form (-form core)", "")
	}
	if !r.delayed() {
		t.add("20 ms of added delay: within 1.35x of the ideal, 1 caller within 1.05x", "-",
			"not in this form (-form delay)", "")
	}
	if len(r.holdings) == 0 {
		t.add("a held lock under 1 KB and no goroutine; 100,000 renewed with under one core", "-",
			"not in this form (-form full)", "")
	}
	if len(r.ticks) == 0 {
		t.add("5,000 jobs on one instant with 3 replicas within 3 s", "-",
			"not in this form (-form full)", "")
	}
	if len(r.outages) == 0 {
		t.add("one node dead or frozen for a minute under 512 callers: memory and goroutines flat",
			"-", "not in this form (-form full)", "")
	}
	return t
}

// delayed reports whether any pairs were measured with added delay.
func (r *results) delayed() bool {
	return slices.ContainsFunc(r.pairs, func(c pairResult) bool { return c.cell.delay > 0 })
}

func (r *results) pairTable() table {
	t := table{title: "Lock + unlock of distinct names",
		about: fmt.Sprintf("All callers in one process, each with a name of its own, for %v per round,"+
			" %d rounds, the libraries in turn in each. Times are of the clock per pair, over all"+
			" callers together; \"theirs/ours\" is the time of the row's pair by that of ours in the"+
			" same cell, the median of the rounds: above 1x ours is faster. Allocations and bytes are"+
			" those of the whole process, what it does in the background included. Commands are those"+
			" that clients sent (a call of a script counts once, what the script calls does not), at"+
			" all nodes that answer together; one call of ours may hold many locks, and a pipeline that"+
			" takes locks ends with an INFO, by which the restart guard knows the node: one caller's"+
			" pair is three commands a node. \"%s\" is the ceiling: the same scripts in the fullest"+
			" calls, by a loop that decides nothing and waits for no other node; \"%s\" asks no more"+
			" nodes than that, as ours does for the most part where many call at once (ADR 0012)."+
			" \"%s\" is these once more, for callers who wait for their answers, as a library's do:"+
			" what is asked while a"+
			" node answers goes to it together afterwards, and nothing is decided, remembered or timed.",
			r.form.pairSpan, r.form.rounds, bareName, leanName, waitName),
		header: []string{"nodes", "callers", "library", "median/pair", "fastest", "slowest",
			"theirs/ours", "allocs", "bytes", "commands", "failed"},
		words: []bool{false, false, true}}
	if r.delayed() {
		t.about += " The added delay is that of a round trip, half of it each way, by a dialer of our" +
			" own, the same for all; the ideal is two round trips, of all callers at once. There the" +
			" callers on bare scripts need not wait until a node has answered: several messages may be" +
			" under way to it."
		t.header = append(t.header, "added delay", "to the ideal")
	}
	for _, c := range r.pairs {
		ours := c.times(oursName)
		for i, name := range c.names {
			s := c.samples[i]
			took := spreadOf(c.times(name))
			failed := int64(0)
			for _, one := range s {
				failed += one.failed
			}
			row := []string{fmt.Sprint(c.cell.nodes), fmt.Sprint(c.cell.callers), name,
				millis(took.median), millis(took.least), millis(took.most),
				ratioText(ratio(ours, c.times(name))),
				whole(column(s, func(s pairSample) float64 { return s.allocs })),
				whole(column(s, func(s pairSample) float64 { return s.bytes })),
				fmt.Sprintf("%.2f", median(column(s, func(s pairSample) float64 { return s.commands }))),
				fmt.Sprint(failed)}
			if c.cell.delay > 0 {
				row = append(row, c.cell.delay.String(), ratioText(c.toIdeal(name)))
			}
			t.add(row...)
		}
	}
	return t
}

func (r *results) handoffTable() table {
	t := table{title: "Hand-off of one name",
		about: fmt.Sprintf("One holder that frees at once, and so many waiters, in as many processes as"+
			" the third column says. They share out as many clients of the library as the second one"+
			" says, each with connections of its own, and the clients the waiters. %d nodes, %v per"+
			" round, %d rounds. Who has freed asks again once another has held the lock, which a"+
			" process beside these tells it: for so long one waits less, and the faster a library is,"+
			" the more that takes from its hand-offs per second. To tell something through two pipes"+
			" took %v. p50 and p99 are from the call of Unlock to the next holder's return from Lock,"+
			" by a clock that all processes share, medians of the rounds. \"ours/theirs\" says how many"+
			" times theirs our hand-offs per second are: above 1x ours is faster. redsync tries again"+
			" by itself after 50 to 250 ms; redislock after %v, our choice, since it has no default."+
			" The added delay is that of a round trip, by proxies before the nodes that hold up all"+
			" that passes."+
			" A round trip is that of a lone PING over the same way.",
			usualNodes, r.form.handoffSpan, r.form.rounds, r.telling.Round(time.Microsecond),
			redislockPause),
		header: []string{"waiters", "clients", "processes", "library", "hand-offs/s", "least", "most",
			"ours/theirs", "p50", "p99", "commands/hand-off", "failed", "added delay", "round trip",
			"p50 in round trips"},
		words: []bool{false, false, false, true}}
	for _, h := range r.handoffs {
		for i, p := range h.peers {
			s := h.samples[i]
			rate := spreadOf(column(s, func(s handoffSample) float64 { return s.perSecond }))
			failed := int64(0)
			for _, one := range s {
				failed += one.failed
			}
			t.add(fmt.Sprint(h.cell.waiters), fmt.Sprint(h.cell.clients),
				fmt.Sprint(r.form.processesOf(h.cell)), p.name,
				fmt.Sprintf("%.0f", rate.median), fmt.Sprintf("%.0f", rate.least),
				fmt.Sprintf("%.0f", rate.most),
				ratioText(ratio(h.spans(0), h.spans(i))), millis(median(h.p50(p.name))),
				millis(median(column(s, func(s handoffSample) time.Duration { return s.p99 }))),
				fmt.Sprintf("%.1f", median(column(s, func(s handoffSample) float64 { return s.commands }))),
				fmt.Sprint(failed), h.cell.delay.String(), millis(h.trip),
				fmt.Sprintf("%.1f", float64(median(h.p50(p.name)))/float64(max(h.trip, 1))))
		}
	}
	return t
}

func (r *results) waitTable() table {
	t := table{title: "Waiting",
		about: fmt.Sprintf("One client holds the lock, the others wait for it, in %s, %v per round:"+
			" commands that all of them send together, the holder's renewals included, per waiter and"+
			" second; the median, the least and the most of %d rounds. Cores are those that all these"+
			" processes use together.", inProcesses(r.form.processes), r.form.waitSpan, r.form.rounds),
		header: []string{"waiters", "library", "commands per waiter and second", "least", "most",
			"cores"},
		words: []bool{false, true}}
	for _, w := range r.waits {
		for i, p := range w.peers {
			rate := spreadOf(w.commands(i))
			t.add(fmt.Sprint(w.waiters), p.name, fmt.Sprintf("%.2f", rate.median),
				fmt.Sprintf("%.2f", rate.least), fmt.Sprintf("%.2f", rate.most), fmt.Sprintf("%.3f",
					median(column(w.samples[i], func(s waitSample) float64 { return s.cores }))))
		}
	}
	return t
}

func (r *results) electionTable() table {
	t := table{title: "Elections",
		about: fmt.Sprintf("So many clients try for one lock at one moment, once each, on %d nodes"+
			" over connections that delay every message by a random time, each way. The winner keeps"+
			" the lock until all have an answer. Times are from the start to the winner's answer, over"+
			" all elections that had one.", usualNodes),
		header: []string{"delay", "contenders", "library", "elections", "no winner", "two winners",
			"p50", "p99"},
		words: []bool{true, false, true}}
	for _, e := range r.elections {
		for i, p := range e.peers {
			one := e.tallies[i]
			t.add(fmt.Sprintf("0 to %v", e.most), fmt.Sprint(e.contenders), p.name,
				fmt.Sprint(one.elections), fmt.Sprint(one.none), fmt.Sprint(one.several),
				millis(quantile(one.took, 0.5)), millis(quantile(one.took, 0.99)))
		}
	}
	return t
}

func (r *results) holdingTable() table {
	t := table{title: "Held locks",
		about: fmt.Sprintf("One client holds so many locks with a TTL of %v on %d nodes, for two"+
			" renewals of each, every third of the TTL. Bytes are of heap, per lock; goroutines are"+
			" those more than with a hundredth of the locks. Late is the longest from the planned"+
			" moment of a renewal to its quorum. Cores are those of the client process.",
			r.form.holdTTL, usualNodes),
		header: []string{"locks", "bytes", "goroutines", "renewals", "commands/renewal", "cores",
			"late", "lost", "held at the end"}}
	for _, h := range r.holdings {
		t.add(fmt.Sprint(h.locks), fmt.Sprintf("%.0f", h.bytes), fmt.Sprint(h.goroutines),
			fmt.Sprint(h.renewals), fmt.Sprintf("%.2f", h.commands), fmt.Sprintf("%.2f", h.cores),
			millis(h.late), fmt.Sprint(h.lost), fmt.Sprint(h.held))
	}
	return t
}

func (r *results) tickTable() table {
	t := table{title: "Ticks at one instant",
		about: fmt.Sprintf("So many replicas of gocron, in one process, each with a client and a"+
			" scheduler of its own, have the same jobs, all due at one instant; a run takes %v, %d"+
			" instants. quorumlock is its Scheduler with OverlapAllow, on %d nodes. gocron-redis-lock is"+
			" gocron's WithDistributedLocker, on one node, with one try (WithTries(1)), as its README"+
			" has it. That try ends after 0.4 s (redsync's expiry of 8 s by its factor of 0.05): a job"+
			" whose tries all end so is missing. Its lock lives as long as the run: a replica which asks later"+
			" runs the job once more, see repeated. Times are from the"+
			" instant to the start of the run: of the last job, and the median of all; medians of the"+
			" instants. Commands are per tick, of all replicas at all nodes; where there is one job, also"+
			" those of the replica that ran it, and of each other one. The replicas with the fewest and"+
			" the most runs show who gets them.", tickRun, r.form.tickRounds, usualNodes),
		header: []string{"replicas", "jobs", "library", "all run after", "fastest", "slowest", "p50",
			"commands/tick", "winner", "a loser", "fewest", "most", "missing", "repeated"},
		words: []bool{false, false, true}}
	for _, c := range r.ticks {
		took := spreadOf(column(c.samples, func(s tickSample) time.Duration { return s.took }))
		var missing, repeated int
		for _, s := range c.samples {
			missing, repeated = missing+s.missing, repeated+s.repeated
		}
		t.add(fmt.Sprint(c.cell.replicas), fmt.Sprint(c.cell.jobs), c.name, millis(took.median),
			millis(took.least), millis(took.most),
			millis(median(column(c.samples, func(s tickSample) time.Duration { return s.p50 }))),
			fmt.Sprintf("%.1f",
				median(column(c.samples, func(s tickSample) float64 { return s.commands }))),
			commandsOf(c.samples, func(s tickSample) float64 { return s.winner }),
			commandsOf(c.samples, func(s tickSample) float64 { return s.loser }),
			whole(column(c.samples, func(s tickSample) float64 { return float64(s.least) })),
			whole(column(c.samples, func(s tickSample) float64 { return float64(s.most) })),
			fmt.Sprint(missing), fmt.Sprint(repeated))
	}
	return t
}

// commandsOf is a share of the commands, where it was counted.
func commandsOf(samples []tickSample, of func(tickSample) float64) string {
	if n := median(column(samples, of)); n > 0 {
		return fmt.Sprintf("%.0f", n)
	}
	return "-"
}

func (r *results) outageTable() table {
	t := table{title: "A node that is gone and comes back",
		about: "Callers lock and unlock distinct names all the time, on five nodes. Pairs per second" +
			" before and while the node is gone; goroutines of the process before, and the most while" +
			" it is gone; heap after a collection before, after a sixth of the time, and at its end." +
			" Full votes: from the node's return until a new lock has the votes of all five. One that" +
			" was dead has lost its memory, and is admitted.",
		header: []string{"trouble", "for", "callers", "pairs/s before", "during", "failed",
			"goroutines before", "most", "heap before", "first", "last", "full votes after"},
		words: []bool{true}}
	for _, o := range r.outages {
		t.add(string(o.cell.trouble), o.cell.span.String(), fmt.Sprint(o.cell.callers),
			fmt.Sprintf("%.0f", o.before), fmt.Sprintf("%.0f", o.during), fmt.Sprint(o.failed),
			fmt.Sprint(o.well.goroutines), fmt.Sprint(o.most), megabytes(o.well.heap),
			megabytes(o.first.heap), megabytes(o.last.heap), millis(o.back))
	}
	return t
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

func whole(values []float64) string { return fmt.Sprintf("%.0f", median(values)) }

func ratioText(v float64, ok bool) string {
	if !ok {
		return "-"
	}
	return times(v)
}

func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f ms", float64(d)/1e6)
}
