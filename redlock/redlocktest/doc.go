// Package redlocktest is a quorum in memory, for tests of code that uses package redlock: real
// clients over nodes that stop, forget, hang and lose answers when a test says so.
//
//	q := redlocktest.Start(t, 5)
//	c, err := q.Client(redlock.Config{})
//
// Limits. The nodes know redlock's own scripts and no other command, and they live in one process:
// it replaces Redis for tests of what your code does when it waits, wins and loses, not for tests
// of Redis. Nothing of it belongs into a program.
//
// The model: each Client is a process of its own, with its own way to every node.
//
//	client A ---.----.----.
//	            |    |    |      Node.Delay, Cut, LoseReplies: what the way does
//	          node node node     Node.Stop, Start, StartEmpty: what the machine does
//	            |    |    |
//	client B ---'----'----'      Quorum.StepClock: what a client's machine does
//
// It works in bubbles of testing/synctest and outside of them. In a bubble everything takes
// virtual time: a test of a lock that is lost after ten seconds takes none. Start the quorum and
// its clients inside of the bubble then, with its own t. Outside, time is real: use a short TTL.
//
// Fresh nodes vote at once, so that tests need not wait. A node that was stopped and started does
// what a real one does: it gives no vote for MaxTTL, with or without its memory, unless
// Config.DisableRestartGuard is set.
//
// A test that names a node or a client that does not exist would test nothing, so it fails: by t,
// or, where Start was given none, by the error of Close. Nothing here panics.
//
// Files in reading order: quorum.go, node.go, machine.go.
package redlocktest
