package model

import (
	"slices"

	"github.com/quorumlock/quorumlock/internal/model/guard"
	"github.com/quorumlock/quorumlock/internal/model/search"
)

const voteForRival = "a vote for a rival of a live lock"

func guardRows() []Row {
	return slices.Concat(guardServer(), guardPair(), guardCutOff(), guardShortCuts())
}

func guardRow(name, finding string, c guard.Config, w Want) Row {
	return Row{
		Name: "guard/" + name, Finding: finding, Want: w,
		rules: c.Rules, sound: guard.Sound(),
		check: func(limit int) search.Report { return guard.Check(c, limit) },
	}
}

// guardWith changes the rules of a check.
func guardWith(c guard.Config, changes ...func(*guard.Rules)) guard.Config {
	for _, change := range changes {
		change(&c.Rules)
	}
	return c
}

func guardWitness(w guard.Witness) func(*guard.Rules) {
	return func(r *guard.Rules) { r.Witness = w }
}

// guardLagless takes the wait for the lag away, which pairs need not if nobody is cut off.
func guardLagless(r *guard.Rules) { r.WaitForLag = false }

func guardServer() []Row {
	restart := guard.Config{Rules: guard.Sound(), LastTime: 9, Restarts: 1, Snapshots: 1}
	restarts2 := guard.Config{Rules: guard.Sound(), LastTime: 9, Restarts: 2, Snapshots: 2}
	return []Row{
		guardRow("restarts, snapshots", "G2", restarts2, holds(17_209)),
		guardRow("restarts, snapshots/script, checked by EVAL", "G1",
			guardWith(restarts2, guardWitness(guard.ScriptChecked)), holds(46_237)),
		guardRow("restart, snapshot/marker alone", "",
			guardWith(restart, guardWitness(guard.MarkerOnly)), breaks(voteForRival, 534)),
		guardRow("restart, snapshot/script, by SCRIPT LOAD", "G1",
			guardWith(restart, guardWitness(guard.ScriptLoaded)), breaks(voteForRival, 2_073)),
		guardRow("restart, snapshot/script, by EVAL", "G1",
			guardWith(restart, guardWitness(guard.ScriptEvaled)), breaks(voteForRival, 2_073)),
	}
}

func guardPair() []Row {
	failBack := guard.Config{Rules: guard.Sound(), LastTime: 9, FailOvers: 2}
	failOvers2 := guard.Config{
		Rules: guard.Sound(), LastTime: 11, FailOvers: 2, Restarts: 1, Snapshots: 1,
	}
	failOvers3 := guard.Config{
		Rules: guard.Sound(), LastTime: 9, FailOvers: 3, Restarts: 1, Snapshots: 1,
	}
	runID := func(r *guard.Rules) { r.ReplicationID = false }
	script := guardWitness(guard.ScriptChecked)
	return []Row{
		guardRow("two fail-overs", "G2", failOvers2, holds(656_968)),
		guardRow("three fail-overs/no wait for the lag", "G2",
			guardWith(failOvers3, guardLagless), holds(2_063_871)),
		guardRow("fail-back/run id", "G2", guardWith(failBack, runID), breaks(voteForRival, 888)),
		guardRow("fail-back/run id, no wait for the lag", "G2",
			guardWith(failBack, guardLagless, runID), breaks(voteForRival, 677)),
		guardRow("fail-back/script and run id, no wait for the lag", "G2",
			guardWith(failBack, guardLagless, script, runID), breaks(voteForRival, 1_134)),
		guardRow("fail-back/script, no wait for the lag", "G2",
			guardWith(failBack, guardLagless, script), breaks(voteForRival, 1_410)),
	}
}

// guardCutOff: the old primary may live on. The wait of MaxTTL and the lag for A, and then again
// for B, are over at 11.
func guardCutOff() []Row {
	cutOff := guard.Config{Rules: guard.Sound(), LastTime: 13, FailOvers: 1, CutOff: true}
	restart := cutOff
	restart.FailOvers, restart.Restarts = 2, 1
	noMinReplicas := func(r *guard.Rules) { r.MinReplicas = false }
	return []Row{
		guardRow("cut off", "G3", cutOff, holds(5_055)),
		guardRow("cut off, restart", "G3", restart, holds(569_660)),
		guardRow("cut off/no min-replicas", "G3",
			guardWith(cutOff, noMinReplicas), breaks(voteForRival, 5_253)),
		guardRow("cut off/no wait for the lag", "G3",
			guardWith(cutOff, guardLagless), breaks(voteForRival, 2_186)),
		guardRow("cut off/neither", "G3",
			guardWith(cutOff, noMinReplicas, guardLagless), breaks(voteForRival, 2_194)),
	}
}

func guardShortCuts() []Row {
	config := func(change func(*guard.Config)) guard.Config {
		c := guard.Config{Rules: guard.Sound(), LastTime: 9}
		change(&c)
		return c
	}
	flush := config(func(c *guard.Config) { c.Flushes = 1 })
	flushRestart := config(func(c *guard.Config) { c.Flushes, c.Restarts, c.Snapshots = 1, 1, 1 })
	slowBoot := config(func(c *guard.Config) { c.SlowBoots = 1 })
	failOver := config(func(c *guard.Config) { c.FailOvers = 1 })
	failBack := config(func(c *guard.Config) { c.FailOvers, c.Flushes = 2, 1 })
	moves := config(func(c *guard.Config) { c.FailOvers, c.Moves = 1, true })
	movesFlush := config(func(c *guard.Config) { c.FailOvers, c.Flushes, c.Moves = 2, 1, true })

	as := func(s guard.ShortCut) func(*guard.Rules) {
		return func(r *guard.Rules) { r.ShortCut = s }
	}
	return []Row{
		guardRow("flush/new by its uptime", "G4a",
			guardWith(flush, as(guard.ByUptime)), breaks(voteForRival, 53)),
		guardRow("flush/new by the witness script", "G4a",
			guardWith(flush, as(guard.ByWitnessScript)), holds(160)),
		guardRow("flush, restart/new by script and counters", "G4a",
			guardWith(flushRestart, as(guard.ByWitnessCounters)), holds(10_030)),
		guardRow("fail-over/new by the witness script", "G4b",
			guardWith(failOver, guardLagless, as(guard.ByWitnessScript)),
			breaks(voteForRival, 164)),
		guardRow("fail-back, flush/new by script and counters", "G4b",
			guardWith(failBack, guardLagless, as(guard.ByWitnessCounters)), holds(15_188)),
		guardRow("address moves/new by script and counters", "G4c",
			guardWith(moves, guardLagless, as(guard.ByWitnessCounters)),
			breaks(voteForRival, 164)),
		guardRow("slow boot/new by script and counters", "G4d",
			guardWith(slowBoot, as(guard.ByWitnessCounters)), breaks(voteForRival, 156)),
		guardRow("slow boot", "G4d", slowBoot, holds(424)),
		guardRow("address moves, flush/no wait for the lag", "G4",
			guardWith(movesFlush, guardLagless), holds(25_280)),
	}
}
