// Package sim runs random schedules against the whole of package redlock, over nodes in memory and
// in the virtual time of testing/synctest, and looks after every event whether what redlock
// promises still holds.
//
// Limits. A seed fixes the plan: who does what with which options, and how the ways and machines
// fail. It does not fix which of two goroutines runs first in one and the same instant, nor the
// random part of owner tokens, so a failing seed is replayed a number of times. In half of the
// schedules the clients' restart guard is off and the nodes themselves stay silent for MaxTTL after
// they forgot, so that the lock is tried without the guard.
//
//	Plan (from a seed)
//	  |            actors: TryLock, Lock, Do, Extend, Unlock, waiting, cancelling ---> events
//	World -------- weather: delay, lose, repeat, cut, freeze, forget ---------------> events
//	  |            Watch: invariants, after each event and by a fine ticker
//	Result: violations, counters, the last events
//
// The invariants (watch.go): never two locks of a name valid at once; a rival wins only after the
// context of the one before is done; what is over stays over; no validity longer than TTL less
// drift; tokens grow; no key without an end but ql:node; at the end every name can be had again,
// and all keys go. That no goroutine is left is told by the bubble.
//
// Files in reading order: plan.go, watch.go, world.go, actor.go, weather.go, amnesia.go, run.go,
// counts.go.
package sim
