package model

import (
	"slices"

	"github.com/quorumlock/quorumlock/internal/model/search"
	"github.com/quorumlock/quorumlock/internal/model/tick"
)

const runsTwice = "T1 runs twice"

func tickRows() []Row {
	return slices.Concat(tickClaims(), tickRestarts(), tickProgress())
}

func tickRow(name, finding string, c tick.Config, w Want) Row {
	return Row{
		Name: "tick/" + name, Finding: finding, Want: w,
		rules: c.Rules, sound: tick.Sound(),
		check: func(limit int) search.Report { return tick.Check(c, limit) },
	}
}

// tickWith changes the rules of a check.
func tickWith(c tick.Config, changes ...func(*tick.Rules)) tick.Config {
	for _, change := range changes {
		change(&c.Rules)
	}
	return c
}

// tickTwo is two replicas that claim one instant, to which changes are made.
func tickTwo(changes ...func(*tick.Config)) tick.Config {
	c := tick.Config{Rules: tick.Sound(), Attempts: "AB", Instants: 1}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func tickCrash(c *tick.Config)   { c.Crashes++ }
func tickRestart(c *tick.Config) { c.Restarts++ }
func tickInTurn(c *tick.Config)  { c.InTurn = true }

func tickBallotOff(r *tick.Rules) { r.Ballot = false }

func tickClaims() []Row {
	two := tickTwo()
	late := func(c *tick.Config) { c.LateGrants = true }

	firstCommit := func(r *tick.Rules) { r.CommitFirst = false }
	withoutKey := func(r *tick.Rules) { r.CommitOwnsKey = false }
	refusals := func(r *tick.Rules) { r.ReadNeedsGrant = false }
	anyTime := func(r *tick.Rules) { r.RunWhileValid = false }
	return []Row{
		tickRow("two replicas", "R1", two, holds(17_743)),
		tickRow("two replicas/run by one node's commit", "",
			tickWith(two, firstCommit), breaks(runsTwice, 8_132)),
		tickRow("two replicas/commit without the key", "",
			tickWith(two, withoutKey), breaks(runsTwice, 9_410)),
		tickRow("two replicas/refusal counts as read", "R1",
			tickWith(two, refusals), breaks(runsTwice, 17_332)),
		tickRow("two replicas/refusal counts as read, no look at the validity", "R1",
			tickWith(two, refusals, anyTime), breaks(runsTwice, 17_206)),
		tickRow("two replicas/no look at the validity", "",
			tickWith(two, anyTime), holds(17_743)),

		tickRow("late grants", "", tickTwo(late), holds(56_246)),
		tickRow("late grants/no look at the validity", "",
			tickWith(tickTwo(late), anyTime), breaks(runsTwice, 51_997)),
		tickRow("late grants, crash", "", tickTwo(late, tickCrash), holds(126_880)),
		tickRow("late grants, restart", "", tickTwo(late, tickRestart), holds(415_848)),
	}
}

func tickRestarts() []Row {
	restart := tickTwo(tickRestart)
	restarts2 := tickTwo(tickRestart, tickRestart)
	inTurn := tickTwo(tickRestart, tickInTurn)
	// The run begins before the instant.
	early, earlyInTurn := restart, inTurn
	early.Early, earlyInTurn.Early = true, true

	believed := func(r *tick.Rules) { r.Memory = tick.Believed }
	noVote := func(r *tick.Rules) { r.Memory = tick.NoVote }
	anyInstant := func(r *tick.Rules) { r.NotBeforeInstant = false }
	return []Row{
		tickRow("in turn, restart", "T1", inTurn, holds(27_060)),
		tickRow("in turn, restart/forgotten marks", "T1",
			tickWith(inTurn, believed), breaks(runsTwice, 18_564)),
		tickRow("restart/forgotten marks", "T1",
			tickWith(restart, believed), breaks(runsTwice, 94_945)),
		tickRow("restart/forgotten marks, no ballot", "T1",
			tickWith(restart, believed, tickBallotOff), breaks(runsTwice, 128_299)),
		tickRow("two restarts", "T1", restarts2, holds(579_382)),
		tickRow("two restarts/no vote", "T1", tickWith(restarts2, noVote), holds(372_802)),

		tickRow("early, restart", "T4", early, holds(168_275)),
		tickRow("early, restart/votes before the instant", "T4",
			tickWith(early, anyInstant), breaks(runsTwice, 220_237)),
		tickRow("early, in turn, restart/votes before the instant", "T4",
			tickWith(earlyInTurn, anyInstant), breaks(runsTwice, 41_410)),
	}
}

func tickProgress() []Row {
	// Two claimers may die, one after the other, before the third begins.
	dead := tickTwo(tickInTurn, tickCrash, tickCrash)
	dead.Attempts = "ABC"
	down := tickTwo(tickCrash, func(c *tick.Config) { c.Down = 1 })
	lost := tickTwo(func(c *tick.Config) { c.Attempts, c.Losses = "AA", 2 })
	again := tickTwo(func(c *tick.Config) { c.Attempts = "AAB" })
	two := func(c *tick.Config) { c.Instants = 2 }

	addUp := func(r *tick.Rules) { r.PerOwner = false }
	ownCount := func(r *tick.Rules) { r.OwnAttempts = false }
	newestMark := func(r *tick.Rules) { r.KeepMarks = false }
	return []Row{
		tickRow("dead claimers", "T2", dead, holds(932_637)),
		tickRow("dead claimers/no ballot", "T2",
			tickWith(dead, tickBallotOff), stuck(1_727_220, 1_728, 0)),
		tickRow("dead claimers/marks of all owners add up", "R2",
			tickWith(dead, addUp), stuck(912_477, 1_140, 0)),
		tickRow("crash, node down", "T2", down, holds(198_980)),

		tickRow("lost commits", "T3", lost, holds(17_781)),
		tickRow("lost commits/own attempts count", "T3",
			tickWith(lost, ownCount), stuck(16_303, 39, 0)),
		tickRow("two attempts", "T3", again, holds(602_709)),

		tickRow("two instants", "T5", tickTwo(two), holds(100_050)),
		tickRow("two instants/only the newest mark", "T5",
			tickWith(tickTwo(two), newestMark), stuck(94_176, 30, 0)),
		tickRow("two instants, crash", "T5", tickTwo(two, tickCrash), holds(255_583)),
	}
}
