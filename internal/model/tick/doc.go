// Package tick models the promise of the scheduler: an instant is run at most once; and it is run,
// if it can be shown that nobody has.
//
// Three nodes with a claim lock for the job and the marks of its instants; replicas that claim an
// instant, commit it on a majority, and run it. Replicas crash, nodes restart empty or go down,
// replies are lost, a commit may arrive late, or after its claimer died. A claim may end at any
// moment, so there is no clock but the order of the instants. The package checks findings T1
// (forgotten marks), T2 (dead claimers), T3 (own attempts), T4 (early claims), T5 (marks that hide
// older ones), R1 (a refusal is not a reading) and R2 (marks count per owner).
//
// In reading order: config.go, state.go, claim.go (what a claimer does), node.go (what a node
// does), faults.go, verdict.go (what is broken, and who is stuck).
package tick
