// Package door is the one way to parts of redlock that are not public, for packages of this module
// that need them: redlocktest makes clients over nodes in memory, and the scheduler and tests
// reach the engine behind a client. redlock fills it in when it is initialised.
package door

import (
	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// NewClient makes a *redlock.Client from a redlock.Config whose Addrs and Clients are ignored,
// over these nodes and this clock.
var NewClient func(config any, nodes []quorum.Node, clk clock.Clock) (any, error)

// Engine is what a *redlock.Client runs on.
var Engine func(client any) *quorum.Engine
