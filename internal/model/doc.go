// Package model is a table of checks of the protocol. Each explores every run of a small model of
// it: all orders of messages, all crashes and restarts, within bounds.
//
// There are five models, each about one promise:
//
//	exclusion   never two valid holders
//	fencing     the fencing token grows with every later holder
//	guard       a node that forgot a lock votes for nobody else while it may live
//	tick        an instant runs at most once; and it runs, if it is certain that it has not
//	vote        contention has one winner, never two
//
// In each the rules of the protocol are named switches, in a struct called Rules. A row of the
// table is a model with its rules and its bounds, and says what must come of it: it holds, in so
// many states; or something is violated; or there are states, so many, from which the goal cannot
// be reached any more. For every rule there is a row in which it alone is missing and something
// breaks, so no rule is there without need. The name of a row is the model and the bounds and,
// after one more slash, what was changed in the rules.
//
//	make model
//	go run ./internal/model/cmd/model -v -row "exclusion/restart/plant on a waiting node"
//
// The second prints a shortest run to what finding P1 of the protocol review is about. The tests of
// this package check the smaller rows.
//
// # What a row says, and what not
//
// A row that holds has seen every run within its bounds: three nodes (in vote also five), two or
// three clients or replicas, a TTL of one to three units, one or two of each fault. It says nothing
// of runs beyond. Each finding needs but a few steps, so what is broken tends to break within such
// bounds; that is experience, not proof.
//
// Not modelled: clocks that drift or are stepped (P7, P8), users with different MaxTTL (P6), Resume
// (P5), registers that expire and Admit (R3), more than two restarts, snapshots of marks,
// redelivery and catch-up, the elector. In exclusion all have the same time, so a validity ends
// exactly with its oldest key; the drift allowance comes on top. In fencing and tick a validity may
// end at any moment instead of by a clock. In tick an acquire for a claim that was given up never
// arrives; in vote the keys of a contender that died never end.
//
// # Beside the protocol review
//
// The rows carry the names of the findings they belong to, and come out as the protocol review
// says. In vote the numbers of states are the review's too, in guard they are those without
// fail-overs; elsewhere they are smaller, since more is forgotten when states are compared. Where
// the models differ, or go further:
//
//   - tick: an acquire may still grant a claim that is already being committed ("late grants").
//     Then a claimer with its majority of commits must look at the validity of the claim before it
//     runs: without, an instant runs twice, with two replicas and no fault but slow messages. The
//     review held the look for unnecessary, in a model in which late acquires never arrive.
//   - tick: marks are kept for each instant; and a node whose memory is too new for an instant
//     grants the claim but does not count as read. That it gives no vote is sound too, and a row.
//   - tick: voting only once the instant has come (T4) is needed for at most once, and not only for
//     progress: what was run early may be forgotten by a node whose memory begins before the
//     instant, and so counts as whole.
//   - guard: that a pair which waits for MaxTTL and the lag is sound shows only when time goes on
//     to 11. Until 9, the review's bound, B cannot have been granted anything.
//   - vote: rows with dead nodes have all rules in force, hence a few states more. With three
//     contenders and new attempts, the review took a refusal that names the second attempt of B
//     for silence: 23,549 states for its 23,539, 353,193 and three ends for its 351,035 and two.
//   - fencing: the raise goes to the largest answer, the token is a number that a majority has
//     answered or was raised to, a plant is an acquire that proposes the token, and the floor is
//     exactly MaxTTL after a memory began, as in the protocol's final form.
//   - P4, T3, T5 and G4d, which the review argued, are found by a model.
//
// # Files
//
// In reading order: search (what a model is, and the search), bitset; then exclusion, fencing,
// guard, tick and vote, each with its files listed in its package comment; here row.go (a row and
// what is wanted of it), table.go and rows_*.go (all rows); cmd/model (the command).
package model
