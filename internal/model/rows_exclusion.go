package model

import (
	"slices"

	"github.com/quorumlock/quorumlock/internal/model/exclusion"
	"github.com/quorumlock/quorumlock/internal/model/search"
)

const twoHolders = "two valid holders"

func exclusionRows() []Row {
	return slices.Concat(exclusionAttempts(), exclusionExtends(), exclusionRestarts())
}

func exclusionRow(name, finding string, c exclusion.Config, w Want) Row {
	return Row{
		Name: "exclusion/" + name, Finding: finding, Want: w,
		rules: c.Rules, sound: exclusion.Sound(),
		check: func(limit int) search.Report { return exclusion.Check(c, limit) },
	}
}

// exclusionWith changes the rules of a check.
func exclusionWith(c exclusion.Config, change func(*exclusion.Rules)) exclusion.Config {
	change(&c.Rules)
	return c
}

func exclusionAttempts() []Row {
	// A and B contend, without a fault.
	contend := exclusion.Config{
		Rules: exclusion.Sound(), Attempts: "AB", TTL: 2, MaxTTL: 2, RoundBound: 2, LastTime: 2,
	}
	// A asks twice; and the same with all that can go wrong in it.
	twice := contend
	twice.Attempts = "AAB"
	twiceAll := twice
	twiceAll.LastTime, twiceAll.GivesUp, twiceAll.Unlocks, twiceAll.LostReplies = 3, true, true, true

	half := func(r *exclusion.Rules) { r.Majority = false }
	fromEnd := func(r *exclusion.Rules) { r.FromFirstByte = false }
	tokenReused := func(r *exclusion.Rules) { r.FreshToken = false }
	anyKey := func(r *exclusion.Rules) { r.ReleaseOwnKey = false }
	return []Row{
		exclusionRow("contenders", "", contend, holds(20_392)),
		exclusionRow("contenders/half is enough", "",
			exclusionWith(contend, half), breaks(twoHolders, 472)),
		exclusionRow("contenders/validity from the end of the round", "",
			exclusionWith(contend, fromEnd), breaks(twoHolders, 8_269)),

		exclusionRow("attempts", "P2", twice, holds(187_658)),
		exclusionRow("attempts/token reused", "P2",
			exclusionWith(twice, tokenReused), breaks(twoHolders, 45_805)),
		exclusionRow("attempts, lost replies/token reused", "P2",
			exclusionWith(twiceAll, tokenReused), breaks(twoHolders, 476_310)),
		exclusionRow("attempts/release of any key", "",
			exclusionWith(twice, anyKey), breaks(twoHolders, 57_548)),
	}
}

func exclusionExtends() []Row {
	// A holds and extends once, while B asks, without a fault.
	extend := exclusion.Config{
		Rules: exclusion.Sound(), Attempts: "AB", Extends: 1, HoldsAtStart: true,
		TTL: 2, MaxTTL: 2, RoundBound: 2, LastTime: 4,
	}
	shorter := extend
	shorter.ExtendTTL = 1

	anyAnswer := func(r *exclusion.Rules) { r.ExtendOwnKey = false }
	cuts := func(r *exclusion.Rules) { r.ExtendNeverShortens = false }
	return []Row{
		exclusionRow("extends", "", extend, holds(9_964)),
		exclusionRow("extends/any answer counts", "",
			exclusionWith(extend, anyAnswer), breaks(twoHolders, 4_051)),
		exclusionRow("short extends", "P4", shorter, holds(6_685)),
		exclusionRow("short extends/cut the key", "P4",
			exclusionWith(shorter, cuts), breaks(twoHolders, 877)),
	}
}

func exclusionRestarts() []Row {
	// A holds, extends twice and plants, while B asks and a node restarts.
	restart := exclusion.Config{
		Rules: exclusion.Sound(), Attempts: "AB", Extends: 2, HoldsAtStart: true,
		TTL: 2, MaxTTL: 2, RoundBound: 2, LastTime: 5, Restarts: 1,
	}
	oneTTL, restarts2, ttl3 := restart, restart, restart
	oneTTL.LastTime = 2
	restarts2.Restarts = 2
	ttl3.TTL, ttl3.MaxTTL, ttl3.RoundBound, ttl3.LastTime = 3, 3, 3, 7
	shortRound := ttl3
	shortRound.RoundBound = 2
	snapshot := exclusion.Config{
		Rules: exclusion.Sound(), Attempts: "AB", Extends: 1, HoldsAtStart: true, Unlocks: true,
		TTL: 1, MaxTTL: 1, RoundBound: 1, LastTime: 3, Restarts: 1, Snapshots: 1,
	}
	// One of each fault, but nobody extends.
	faults := exclusion.Config{
		Rules: exclusion.Sound(), Attempts: "AB", HoldsAtStart: true, Unlocks: true,
		TTL: 2, MaxTTL: 2, RoundBound: 2, LastTime: 4,
		Restarts: 1, Snapshots: 1, Duplicates: 1, LostReplies: true,
	}

	guardOff := func(r *exclusion.Rules) { r.Guard = false }
	plantsUnguarded := func(r *exclusion.Rules) { r.GuardPlants = false }
	return []Row{
		exclusionRow("restart", "P1", restart, holds(318_455)),
		exclusionRow("restart/guard off", "",
			exclusionWith(restart, guardOff), breaks(twoHolders, 714)),
		exclusionRow("restart/plant on a waiting node", "P1",
			exclusionWith(restart, plantsUnguarded), breaks(twoHolders, 244_464)),
		exclusionRow("restart within one TTL/plant on a waiting node", "P1",
			exclusionWith(oneTTL, plantsUnguarded), breaks(twoHolders, 150_100)),
		exclusionRow("restart, short round/plant on a waiting node", "P1",
			exclusionWith(shortRound, plantsUnguarded), breaks(twoHolders, 1_407_715)),
		exclusionRow("restart, longer TTL", "P1", ttl3, holds(1_682_610)),
		exclusionRow("two restarts", "P1", restarts2, holds(758_729)),
		exclusionRow("restart, snapshot, unlock", "P1", snapshot, holds(453_834)),
		exclusionRow("one of each fault", "", faults, holds(460_112)),
	}
}
