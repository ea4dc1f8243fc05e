// Package integration tries redlock on redis-server in containers: independent nodes, each in a
// container of its own, behind a proxy that can cut them off, lose what they say, and slow them
// down. Its tests use the public API of redlock and schedule alone.
//
// It is a module of its own, so that what it needs never comes into the modules of those who use
// redlock. "make integration" runs it; it needs a container engine.
//
//	redlock.Client ──> proxy (toxiproxy, in this process, one address for the node's life)
//	                     └──> mapped port (another one after each start) ──> container: redis-server
//
// Limits. Containers listen on 127.0.0.1 only, on ports that the engine chooses. The tests remove
// what they made; .ci/integration does so once more after a run that was killed.
//
// Files in reading order: cluster.go, options.go, node.go, start.sh (what a container runs),
// life.go (stop, kill, start, pause), clock.go, way.go, wire.go, ask.go, faults.go, pair.go (a
// primary, its replica, sentinels), image.go with image/build, authority.go. Tests: one file per
// kind of trouble; rig_test.go has what they share.
//
// Beside it: soak, a schedule under a nemesis ("make soak"), and bench, which measures redlock beside
// other libraries ("make bench").
package integration
