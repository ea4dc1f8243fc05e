// Command quorumlock tells people on call how the nodes of a quorum are and who holds a lock, and
// does the two things that only people may decide: to admit a node, and to free a stranger's lock.
//
//	go run github.com/quorumlock/quorumlock/redlock/cmd/quorumlock -addrs a:6379,b:6379,c:6379 nodes
//
// Limits. It asks the nodes and no process that uses them: how many wait for a lock, or whether a
// holder is still at work, it cannot say. Nodes, inspect and watch write nothing on the nodes; they
// raise nobody's MaxTTL and let no memory begin to wait.
//
// Exit status: 0 done; 1 other errors; 2 usage, or what the library calls ErrInvalid; 3 ErrHeld;
// 4 ErrNoQuorum; 5 ErrLost; 6 ErrNotHeld. For nodes, 4 means that fewer than a majority
// vote. (The go command makes 1 of all but 0: build it first where a script asks.)
//
// Files in reading order: main.go, flags.go, nodes.go, inspect.go, free.go, watch.go, print.go.
package main
