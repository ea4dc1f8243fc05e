// Package redsyncpool lets code that was written on redsync v4 run on the nodes of a
// redlock.Client: the same go-redis clients serve both, under the same keys, so that both exclude
// each other.
//
// It is for the time of a migration. What redlock adds does not come to redsync with it: such a
// lock has no fencing token, no renewal and no restart guard, so a node that restarts without its
// data can let redsync's lock be taken twice. Docs/migrating-from-redsync.md has the way from one
// library to the other, both running at once.
//
//	go-redis clients ──┬── redlock.New(redlock.Config{Clients: clients})
//	                   └── redsyncpool.New(clients...) ── redsync.New(pools...)
//
// Files: pool.go.
package redsyncpool
