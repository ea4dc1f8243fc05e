package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Why a tick is not run here. Each also matches redlock.ErrHeld (another replica has it) or
// redlock.ErrNoQuorum (it could not be decided; redlock.ErrClosed instead, if because the client is
// closed), never both, and holds a *redlock.RoundError that says who has it, or which nodes gave no
// vote.
var (
	// ErrTickTaken: the tick is on record on a majority of the nodes: another replica runs it, or
	// has run it, or it was passed over because the run before was still under way. Matches
	// redlock.ErrHeld.
	ErrTickTaken = errors.New("schedule: tick taken")

	// ErrTickUndecided: whether somebody has run the tick could not be found out in time, so it is
	// not run: too few nodes answered, or another replica had claimed it and neither committed nor
	// gave up, or too many other ticks were before it. Matches redlock.ErrNoQuorum, or
	// redlock.ErrClosed.
	ErrTickUndecided = errors.New("schedule: tick undecided")

	// ErrTickTooEarly: by the nodes' clocks the tick is not due, and will not be before this
	// replica's clock shows the job's next one. Matches redlock.ErrNoQuorum.
	ErrTickTooEarly = errors.New("schedule: tick too early")

	// ErrTickTooLate: by the clocks of a majority of the nodes the tick's Grace is over. Matches
	// redlock.ErrNoQuorum.
	ErrTickTooLate = errors.New("schedule: tick too late")
)

// Causes of ended contexts, and errors of calls.
var (
	errShutDown = fmt.Errorf("schedule: %w: the scheduler was shut down", redlock.ErrClosed)
	errNoGrant  = errors.New("schedule: a run without a claim; it is not run")
	errExited   = errors.New("schedule: run ended its goroutine by runtime.Goexit")
	errLeft     = errors.New("schedule: run was still under way at the end of Shutdown")
)

// A tickError is why a tick is not run.
type tickError struct {
	kind  error // one of the sentinels above
	job   string
	at    time.Time
	why   string // "": the cause says it all
	cause error  // matches redlock.ErrHeld or redlock.ErrNoQuorum
}

func (e *tickError) Error() string {
	why := ""
	if e.why != "" {
		why = " (" + e.why + ")"
	}
	return fmt.Sprintf("%v%s: %q at %s: %v", e.kind, why, e.job,
		e.at.UTC().Format("2006-01-02T15:04:05.000Z"), e.cause)
}

// Unwrap gives all that the error can be matched against.
func (e *tickError) Unwrap() []error { return []error{e.kind, e.cause} }

// invalid is a refused argument.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", redlock.ErrInvalid, fmt.Sprintf(format, args...))
}
