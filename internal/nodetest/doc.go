// Package nodetest is one conformance suite for everything that claims to be a quorum.Node: the
// fake node in memory, embedded miniredis, real redis-server. What holds here holds for all of
// them, so what is proved on the fake node is worth something.
//
// Limits. It asks what the library asks: the scripts, INFO replication, subscriptions. How a node
// behaves when it fails is the fake node's own business, and real servers' in integration.
//
// Files in reading order: nodetest.go (Run), command.go (messages as the engine makes them),
// ask.go (how claims are checked), acquire.go, register.go, guard.go, admit.go, holder.go,
// tick.go, names.go, batch.go, forget.go, listener.go.
package nodetest
