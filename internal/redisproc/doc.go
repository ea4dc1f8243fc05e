// Package redisproc starts real redis-server processes on 127.0.0.1, for tests and benchmarks.
//
// Start and ForTest start any number of them side by side, each with a directory and a port of
// its own. A node can be stopped, killed, started again with or without its data, frozen, made
// a replica, and told a different time of day.
//
// Limits. It is for Unix; on Linux nodes die with the program that started them, elsewhere a
// killed test run may leave some behind. The server must be redis-server itself (6.2 or later,
// or a compatible one), not a script that starts it as a child: a node is known by the id of
// its process, so that no stranger on the same port is ever taken for it, or ended.
//
//	Start ── config ──> spawn ──> ready (INFO's process_id is ours, then PING) ──> *Node
//	           ^                                                                    │
//	           └──────── Restart (same port, same directory) <── Stop, Kill ────────┘
//
// Files in reading order: start.go, node.go, options.go, config.go, process.go, ready.go,
// ask.go, replica.go, clock.go with shim/clock.c, find.go, fortest.go, and sys_*.go for what
// differs between operating systems.
package redisproc
