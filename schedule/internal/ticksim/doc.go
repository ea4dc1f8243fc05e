// Package ticksim runs seven replicas of a scheduler through the two nights of a year on which
// daylight saving changes, while everything goes wrong that the design allows for, and counts from
// what the runs themselves recorded which ticks ran, which ran twice, and which did not run and
// why. It is tests only.
//
// Every run of the tests lives through 20 seeds, but only through an hour and a half around the
// change. "make test" lives through that with the race detector, and then through the whole days,
// noon to noon, of both nights in 20 seeds without it; CI in 200. Both nights of a seed are 8 to 15
// seconds of a processor, and six times as many with the race detector. See TestTicks for how to
// ask for more, or for one.
//
// The Elector is asked at every tick by five replicas, which hand over, die and freeze close to
// ticks, for a quarter of an hour in each of a few seeds.
//
// Limits. A seed fixes the plan: clocks, faults, their kinds and times. It does not fix which of
// several goroutines runs first in one and the same instant, nor the random part of owner tokens,
// so a seed that failed is replayed a number of times.
//
//	Plan (from a seed)
//	  |        slots: crash, freeze, cut, redeploy, step a clock, once an hour at least
//	  |        ways: cut between win and commit, of so many claims
//	World ---- weather: nodes stop, restart, restart empty, a minority at a time
//	  |
//	Account: marks on the nodes, runs, refusals, faults -> each missed tick and its reason
//
// A replica that dies is cut off from all nodes for good and started anew; what was left of it can
// reach nobody, and its runs that had not begun never do. One that freezes sends and hears nothing
// until it goes on, and then all that piled up arrives.
//
// Files in reading order: plan_test.go, world_test.go, process_test.go, spin_test.go, way_test.go,
// slot_test.go, weather_test.go, account_test.go, counts_test.go, ticksim_test.go; elector_test.go.
package ticksim
