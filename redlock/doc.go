// Package redlock takes locks on a majority of independent Redis nodes.
//
// At any moment at most one process holds a lock of a name, as long as a majority of the nodes is
// reachable and clocks run at nearly the same rate; no single node can break that. What it cannot
// promise: a process that is stopped between looking at its lock and acting acts late, with any
// lock that has a time limit. Where that matters, give Token, the fencing token, to the resource
// that the lock protects. Docs/guarantees.md has all assumptions.
//
// The model is Redlock ("Distributed Locks with Redis"), with what it leaves open decided:
//
//		          TryLock, Lock, Do
//		                 |
//		   attempt: one owner token, one start time
//		                 |
//		  +------+-------+-------+------+
//		node 1  node 2 node 3  node 4  node 5     SET key token NX PX ttl
//		  +------+-------+-------+------+
//		                 |
//		     verdict: won, held, split, no quorum
//		                 |
//		          Lock: valid until start + TTL - drift, renewed every TTL/3
//
//	  - Contenders that split the votes find a winner among themselves.
//	  - Lock waits by notification, Unlock and failed attempts clean up in the background.
//	  - A held lock costs no goroutine; loss ends its context before a rival can win.
//	  - Every lock has a fencing token, in the same round trip.
//
// Files in reading order: client.go, config.go, acquire.go, lock.go, context.go, renew.go,
// keeper.go, unlock.go, wait.go, do.go, handle.go, inspect.go, admit.go, errors.go, options.go,
// observer.go, explain.go.
package redlock
