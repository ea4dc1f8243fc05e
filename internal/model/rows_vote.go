package model

import (
	"slices"

	"github.com/quorumlock/quorumlock/internal/model/search"
	"github.com/quorumlock/quorumlock/internal/model/vote"
)

func voteRows() []Row {
	return slices.Concat(voteFaultless(), voteFaults(), voteNewAttempts())
}

func voteRow(name, finding string, c vote.Config, w Want) Row {
	return Row{
		Name: "vote/" + name, Finding: finding, Want: w,
		rules: c.Rules, sound: vote.Sound(),
		check: func(limit int) search.Report { return vote.Check(c, limit) },
	}
}

// votes is a check with so many nodes and contenders, to which changes are made.
func votes(nodes, contenders int, changes ...func(*vote.Config)) vote.Config {
	c := vote.Config{Rules: vote.Sound(), Nodes: nodes, Contenders: contenders}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func voteLoss(c *vote.Config)  { c.Losses++ }
func voteCrash(c *vote.Config) { c.Crashes++ }
func voteDead(c *vote.Config)  { c.DeadNodes++ }
func voteAnew(c *vote.Config)  { c.AskAnew = true }

func voteFaultless() []Row {
	half := func(c *vote.Config) { c.Rules.Majority = false }
	nobodyStays := func(c *vote.Config) { c.Rules.LeaderStays = false }
	tiesYield := func(c *vote.Config) { c.Rules.BreakTies = false }
	stays := func(c *vote.Config) { c.Rules.Reevaluate = false }
	return []Row{
		voteRow("3 nodes, 2 contenders", "V1", votes(3, 2), holds(120)),
		voteRow("3 nodes, 2 contenders, dead node", "V1", votes(3, 2, voteDead), holds(135)),
		voteRow("3 nodes, 3 contenders", "V1", votes(3, 3), holds(4_735)),
		voteRow("5 nodes, 3 contenders", "V1", votes(5, 3), holds(84_598)),
		voteRow("5 nodes, 3 contenders, dead node", "V1", votes(5, 3, voteDead), holds(70_174)),
		voteRow("3 nodes, 2 contenders/half is enough", "",
			votes(3, 2, half), breaks("two winners", 50)),
		voteRow("3 nodes, 3 contenders/nobody stays", "V1",
			votes(3, 3, nobodyStays), stuck(6_574, 704, 1)),
		voteRow("3 nodes, 3 contenders/ties yield", "V1",
			votes(3, 3, tiesYield), stuck(6_574, 704, 1)),

		voteRow("3 nodes, 3 contenders, dead node", "V4", votes(3, 3, voteDead), holds(3_393)),
		voteRow("3 nodes, 3 contenders, dead node/never reevaluates", "V4",
			votes(3, 3, voteDead, stays), stuck(5_603, 128, 0)),
	}
}

// voteFaults: most are stuck though all rules are in force, for nobody asks anew.
func voteFaults() []Row {
	toSilence := func(c *vote.Config) { c.Rules.AskSilent = false }
	alone := func(c *vote.Config) { c.Alone = true }
	return []Row{
		voteRow("3 nodes, 2 contenders, loss", "V2a", votes(3, 2, voteLoss), holds(739)),
		voteRow("3 nodes, 2 contenders, loss/yields to silence", "V2a",
			votes(3, 2, voteLoss, toSilence), stuck(796, 55, 1)),
		voteRow("5 nodes, 2 contenders, loss", "V2a", votes(5, 2, voteLoss), holds(2_819)),
		voteRow("5 nodes, 2 contenders, loss/yields to silence", "V2a",
			votes(5, 2, voteLoss, toSilence), stuck(3_212, 231, 1)),
		voteRow("3 nodes, 3 contenders, loss/yields to silence", "V2a",
			votes(3, 3, voteLoss, toSilence), stuck(54_925, 3_265, 4)),
		voteRow("3 nodes, 2 contenders, two losses", "V2a",
			votes(3, 2, voteLoss, voteLoss), stuck(3_547, 136, 1)),

		voteRow("3 nodes, 3 contenders, crash", "V2b",
			votes(3, 3, voteCrash), stuck(7_179, 1_557, 17)),
		voteRow("5 nodes, 3 contenders, crash", "V2b",
			votes(5, 3, voteCrash), stuck(107_649, 16_644, 35)),
		voteRow("5 nodes, 2 contenders, loss, crash, dead node/yields to silence", "V2b",
			votes(5, 2, voteLoss, voteCrash, voteDead, toSilence), stuck(5_668, 973, 18)),

		voteRow("3 nodes, 3 contenders, one cut off", "V2c",
			votes(3, 3, alone), stuck(5_317, 396, 0)),
	}
}

// voteNewAttempts: where rows are stuck all attempts are used up. The real number is bounded too,
// and the bound is answered with "split", not with "held".
func voteNewAttempts() []Row {
	oldToken := func(c *vote.Config) { c.Rules.FreshToken = false }
	return []Row{
		voteRow("3 nodes, 2 contenders, two losses, new attempts", "V2a",
			votes(3, 2, voteLoss, voteLoss, voteAnew), holds(3_701)),
		voteRow("5 nodes, 2 contenders, loss, dead node, new attempts", "V2a",
			votes(5, 2, voteLoss, voteDead, voteAnew), holds(11_919)),
		voteRow("3 nodes, 3 contenders, loss, new attempts", "V2a",
			votes(3, 3, voteLoss, voteAnew), stuck(353_193, 2_461, 3)),
		voteRow("3 nodes, 3 contenders, crash, new attempts", "V2b",
			votes(3, 3, voteCrash, voteAnew), stuck(33_328, 5_610, 61)),

		voteRow("3 nodes, 3 contenders, new attempts", "V3",
			votes(3, 3, voteAnew), holds(23_549)),
		voteRow("3 nodes, 3 contenders, new attempts/old token", "V3",
			votes(3, 3, voteAnew, oldToken), stuck(21_206, 785, 1)),
		voteRow("3 nodes, 3 contenders, crash, new attempts/old token", "V3",
			votes(3, 3, voteCrash, voteAnew, oldToken), stuck(30_677, 6_535, 66)),
		voteRow("3 nodes, 3 contenders, loss, new attempts/old token", "V3",
			votes(3, 3, voteLoss, voteAnew, oldToken), stuck(305_343, 13_986, 5)),
	}
}
