package mutants

const (
	claims = "./schedule"
	ticks  = "./schedule/internal/ticksim"

	// Only the group about ticks: what fails in another would catch nothing.
	miniTicks = "^TestMiniredis$/^tick$"
)

// claimed is a mutant that a finding about ticks, as a test, has to notice.
func claimed(test string, m Mutant) Mutant {
	m.Package, m.Run = claims, "^("+test+")$"
	return m
}

func init() { All = append(All, tickRules...) }

// tickRules are the mutants of the rules by which a tick runs at most once, and is not lost.
var tickRules = []Mutant{
	claimed("TestATickEverySecondNeedNotWaitForACrowd", Mutant{Name: "a tick with little time waits for all",
		Rule: "who has less time goes earlier",
		File: "schedule/claim.go",
		Old:  "rand.N(max(left/4, 1))", New: "rand.N(max(30*time.Second-left, 1))"}),
	claimed("TestACrowdOfTicksAllRun", Mutant{Name: "all ticks of an instant at once",
		Rule: "no more claims are under way than the nodes can answer in time",
		File: "schedule/claim.go",
		Old:  "window.New(firstClaims, mostClaims,", New: "window.New(1<<20, 1<<20,"}),
	claimed("TestR1RefusalsAreNotRead", Mutant{Name: "refusals count as read",
		Rule: "where the claim was refused, a commit can still come (R1)",
		File: "quorum/ledger.go",
		Old:  "read := r.Answered && r.Granted && r.Knows", New: "read := r.Answered && r.Knows"}),
	claimed("TestT2TwoDeadClaimers", Mutant{Name: "marks of several owners added up",
		Rule: "taken is one owner's mark on a majority (R2)",
		File: "quorum/ledger.go",
		Old:  "if n >= quorum {\n\t\t\treturn TickTaken",
		New:  "if n+len(marks)-1 >= quorum {\n\t\t\treturn TickTaken"}),
	claimed("TestT1ForgottenMarks|TestT1SomeMemory", Mutant{Name: "forgotten marks are no marks",
		Rule: "a node is read only if its memory began before the tick (T1)",
		File: "quorum/ledger.go",
		Old:  "read := r.Answered && r.Granted && r.Knows", New: "read := r.Answered && r.Granted"}),
	claimed("TestT4EarlyClaims", Mutant{Name: "early claims get votes, node",
		Rule: "a node votes for a tick only once its clock shows it (T4)",
		File: "internal/fakenode/tick.go",
		Old:  "if float64(r.now)/1000 < r.number(r.arg(10)) {", New: "if r.now < 0 {"}),
	{Name: "early claims get votes, script",
		Rule:    "a node votes for a tick only once its clock shows it (T4)",
		File:    "internal/script/claim.lua",
		Old:     "if now / 1000 < tonumber(ARGV[10]) then",
		New:     "if now == nil then",
		Package: nodes, Run: miniTicks},
	{Name: "commit without the claim, script",
		Rule: "only who owns the claim puts a tick on record",
		File: "internal/script/commit.lua",
		Old:  "if holder ~= ARGV[1] then", New: "if holder == '' then",
		Package: nodes, Run: miniTicks},
	claimed("TestT2TwoDeadClaimers", Mutant{Name: "foreign marks refuse, node",
		Rule: "a claim with a larger token writes over marks of the dead (T2)",
		File: "internal/fakenode/tick.go",
		Old:  "if r.number(fencing) > r.number(r.arg(3)) {", New: "if fencing != r.arg(3) {"}),
	{Name: "older claims write over, script",
		Rule: "a mark gives way to a larger token only (T2)",
		File: "internal/script/commit.lua",
		Old:  "> tonumber(ARGV[3])", New: "> tonumber(ARGV[3]) * 2",
		Package: nodes, Run: miniTicks},
	claimed("TestT3LostAcknowledgements", Mutant{Name: "own attempts count",
		Rule: "marks of one's own that started nothing count for nothing (T3)",
		File: "quorum/ledger.go",
		Old:  `r.Owner == "" || ours(r.Owner)`, New: `r.Owner == "" || ours(r.Owner) && false`}),
	claimed("TestAWinnerThatDiesAtAnyMoment", Mutant{Name: "run lock before the commit",
		Rule: "who dies before its commit leaves no run lock",
		File: "schedule/claim.go",
		Old:  "\tif committed, failed := c.commit(ctx, d, out, ttl, stateRun); !committed {",
		New: "\tif c.overlap == OverlapSkip {\n\t\tl, _, _ := c.runLock(ctx)\n" +
			"\t\tdefer func() { _ = l.Unlock(ctx) }()\n\t}\n" +
			"\tif committed, failed := c.commit(ctx, d, out, ttl, stateRun); !committed {"}),
	claimed("TestUpdatedJobs", Mutant{Name: "an updated job's old schedule names its ticks",
		Rule: "a bound locker knows each tick's schedule",
		File: "schedule/bind.go",
		Old:  "const learnEvery = 50 * time.Millisecond", New: "const learnEvery = time.Hour"}),
	claimed("TestTheLastInstantBeforeTheStop", Mutant{Name: "gocron stops at the stop",
		Rule: "all instants before WithStopAt run",
		File: "schedule/plan.go",
		Old:  "o.stopAt.Add(max(mostGrace, o.grace))", New: "o.stopAt"}),
	claimed("TestAfterTheStop", Mutant{Name: "no stop",
		Rule: "no instants from WithStopAt on",
		File: "schedule/job.go",
		Old:  "if !at.Before(j.stopAt) {", New: "if at.IsZero() {"}),
	simulated(Mutant{Name: "commit on one node",
		Rule: "a tick is run only when it is on record on a majority",
		File: "quorum/tick.go",
		Old:  "return tally.Ours >= e.Quorum() && valid, errs, nil",
		New:  "return tally.Ours > 0 && valid, errs, nil"}),
	simulated(Mutant{Name: "run before the commit",
		Rule: "nothing runs that is not on record",
		File: "schedule/claim.go",
		Old:  "stateRun); !committed {", New: "stateRun); !committed && ctx.Err() != nil {"}),
	claimed("TestARunLockWithoutAQuorum", Mutant{Name: "a run lock without a quorum passes the tick over",
		Rule: "passed over is a tick only where the run lock is another's",
		File: "schedule/claim.go",
		Old:  "case errors.Is(err, redlock.ErrHeld):\n\t\treturn nil, stateSkip, err",
		New:  "case err != nil:\n\t\treturn nil, stateSkip, err"}),
	simulated(Mutant{Name: "taken is not believed",
		Rule: "a tick on record is not run again",
		File: "quorum/ledger.go",
		Old:  "if proven[x]+unread >= quorum {", New: "if proven[x] > len(reads) {"}),
	elected(Mutant{Name: "the mark of the leader before is nothing, node",
		Rule: "the tick around a hand-over is not fired twice",
		File: "internal/fakenode/tick.go",
		Old:  "missing >= 0 {", New: "missing > 60_000 {"}),
	elected(Mutant{Name: "a leader believes itself",
		Rule: "IsLeader is what a majority says at this tick",
		File: "schedule/elector.go",
		Old:  "case got.Verdict == quorum.HoldKept && lock.Remaining() > 0:",
		New:  "case lock.Remaining() > 0:"}),
}

// elected is a mutant that an hour of simulated electors has to notice.
func elected(m Mutant) Mutant {
	m.Package, m.Run = ticks, "^TestElectors$"
	return m
}

// simulated is a mutant that a night of simulated replicas has to notice.
func simulated(m Mutant) Mutant {
	m.Package, m.Run = ticks, "^TestTicks$"
	return m
}
