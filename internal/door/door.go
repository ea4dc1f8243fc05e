// Package door is the one way to parts of redlock that are not public, for packages of this module
// that need them: redlocktest makes clients over nodes in memory, and the scheduler and tests
// reach the engine behind a client. redlock fills it in when it is initialised.
package door

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// NewClient makes a *redlock.Client from a redlock.Config whose Addrs and Clients are ignored,
// over these nodes and this clock.
var NewClient func(config any, nodes []quorum.Node, clk clock.Clock) (any, error)

// NewLooker makes a *redlock.Client of a redlock.Config, as redlock.New does, whose Nodes writes
// nothing on the nodes and whose Admit works all the same.
var NewLooker func(config any) (any, error)

// Engine is what a *redlock.Client runs on.
var Engine func(client any) *quorum.Engine

// Open shows what is behind a *redlock.Client. The zero Access, with a nil Engine, stands for a nil
// client or one that New did not make.
var Open func(client any) Access

// An Access is what the scheduler needs of a client beyond its public methods.
type Access struct {
	Engine      *quorum.Engine
	Clock       clock.Clock
	Logger      *slog.Logger
	Identity    string
	NodeTimeout time.Duration
	TTL, MaxTTL time.Duration
	DriftFactor float64
	Done        <-chan struct{} // closed when the client is being closed

	// Lock is TryLock, or with wait Lock, for names that begin with "ql:". It returns a
	// *redlock.Lock; options are redlock.LockOptions.
	Lock func(ctx context.Context, name string, wait bool, options ...any) (any, error)

	// Waiting is the last answer that a Lock call for the name got that still waits; nil: none.
	Waiting func(name string) error

	// Hold is a *redlock.Lock as the engine knows it.
	Hold func(lock any) quorum.Hold

	// Error is a *redlock.RoundError for an attempt that was not won.
	Error func(op, name string, out quorum.Outcome) error

	// HoldError is one for a lock that could not be confirmed: kind is the sentinel.
	HoldError func(op, name string, kind error, c quorum.Confirmation) error
}
