package model

import (
	"slices"

	"github.com/quorumlock/quorumlock/internal/model/fencing"
	"github.com/quorumlock/quorumlock/internal/model/search"
)

const tokenFalls = "a token does not grow"

func fencingRows() []Row {
	return slices.Concat(fencingRegisters(), fencingRestarts())
}

func fencingRow(name, finding string, c fencing.Config, w Want) Row {
	return Row{
		Name: "fencing/" + name, Finding: finding, Want: w,
		rules: c.Rules, sound: fencing.Sound(),
		check: func(limit int) search.Report { return fencing.Check(c, limit) },
	}
}

// fencingWith changes the rules of a check.
func fencingWith(c fencing.Config, change func(*fencing.Rules)) fencing.Config {
	change(&c.Rules)
	return c
}

func fencingRegisters() []Row {
	// Two clients with clocks within 1 of the true time.
	duplicate := fencing.Config{
		Rules: fencing.Sound(), Attempts: 2, Behind: 1, Ahead: 1,
		FirstTime: 2, LastTime: 2, MaxTTL: 3, Duplicates: 1,
	}
	three := fencing.Config{
		Rules: fencing.Sound(), Attempts: 3, Behind: 1, FirstTime: 2, LastTime: 2, MaxTTL: 3,
	}
	plants := fencing.Config{
		Rules: fencing.Sound(), Attempts: 2, Behind: 1, Ahead: 1,
		FirstTime: 2, LastTime: 3, MaxTTL: 3, Plants: true, Lapses: 1,
	}
	plantsToken := plants
	plantsToken.PlantToken = true

	asHigh := func(r *fencing.Rules) { r.GrantPastRegister = false }
	noRaise := func(r *fencing.Rules) { r.RaiseFirst = false }
	keyGone := func(r *fencing.Rules) { r.RaiseOwnKey = false }
	return []Row{
		fencingRow("duplicate", "F1", duplicate, holds(94_484)),
		fencingRow("duplicate/grants only as high as the register", "F1",
			fencingWith(duplicate, asHigh), breaks(tokenFalls, 17_440)),
		fencingRow("three clients", "R3", three, holds(891_331)),
		fencingRow("three clients/no raise", "",
			fencingWith(three, noRaise), breaks(tokenFalls, 195_622)),
		fencingRow("three clients/raise where the key is gone", "",
			fencingWith(three, keyGone), breaks(tokenFalls, 649_550)),
		fencingRow("plants", "F3", plants, holds(186_872)),
		fencingRow("plants with the token", "F3", plantsToken, holds(168_465)),
	}
}

func fencingRestarts() []Row {
	// A node forgets its register and votes again; a clock may be ahead by MaxTTL.
	restart := fencing.Config{
		Rules: fencing.Sound(), Attempts: 2, Behind: 1, Ahead: 2,
		FirstTime: 2, LastTime: 4, MaxTTL: 2, Restarts: 1,
	}
	// At its smallest the clocks are right or behind, and the clamp changes nothing.
	small := restart
	small.Ahead, small.MaxTTL, small.LastTime = 0, 1, 3
	plants := restart
	plants.Ahead, plants.Plants, plants.Lapses = 0, true, 1
	plantsToken := plants
	plantsToken.PlantToken = true

	noClamp := func(r *fencing.Rules) { r.Clamp = false }
	noFloor := func(r *fencing.Rules) { r.Floor = false }
	neither := func(r *fencing.Rules) { r.Clamp, r.Floor = false, false }
	return []Row{
		fencingRow("restart", "F2", restart, holds(965_244)),
		fencingRow("restart/no clamp", "F2",
			fencingWith(restart, noClamp), breaks(tokenFalls, 468_535)),
		fencingRow("restart/no floor", "F2",
			fencingWith(restart, noFloor), breaks(tokenFalls, 578_201)),
		fencingRow("restart/no clamp, no floor", "F2",
			fencingWith(restart, neither), breaks(tokenFalls, 425_070)),
		fencingRow("restart, small", "F2", small, holds(90_724)),
		fencingRow("restart, small/no floor", "F2",
			fencingWith(small, noFloor), breaks(tokenFalls, 44_562)),
		fencingRow("restart, plants", "F2 F3", plants, holds(1_048_145)),
		fencingRow("restart, plants with the token", "F2 F3", plantsToken, holds(946_216)),
	}
}
