package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/teller"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// DefaultGuard is how far apart the ticks of two leaders have to be.
const DefaultGuard = 500 * time.Millisecond

// resignPause is how long an elector that resigned leaves the lease to the others.
const resignPause = time.Second

// An Elector is one replica's part in the election of a leader: while it leads, this replica runs
// all jobs. It campaigns in the background from the moment it is made, so that there is a leader
// before the first tick, and again whenever the lease was lost. Its methods may be called
// concurrently.
//
// At most one replica is told at a tick that it leads, as long as the replicas' clocks agree
// within WithGuard. Clocks that do not may make a tick around a change of the leader run twice or
// not at all: the Scheduler, whose ticks have an identity, does not have that limit. Nor is there
// one instant for all replicas where gocron counts from a replica's start, as for DurationJob: when
// the leader changes, such a job's next run comes after anything from WithGuard to an interval more
// than usual. Crons, and times of day in one location, are the same everywhere.
//
// It is a gocron.Elector, but for replicas that stay standbys for long give gocron its AsLocker
// instead: for every tick that an elector refuses gocron keeps an entry and looks through all of
// them at the next, so that memory and the time per tick grow until the replica leads.
type Elector struct {
	access   door.Access
	name     string // of the election
	lease    string // name of the lease lock
	ttl      time.Duration
	guard    time.Duration
	onChange func(leading bool)
	teller   teller.Teller

	cancel context.CancelFunc
	ended  chan struct{} // closed when the campaign is over

	mu     sync.Mutex // guards below
	term   *term      // nil: this replica does not lead
	closed bool
}

// An ElectorOption changes what NewElector makes.
type ElectorOption func(*Elector)

// WithLeaseTTL is how long the lease outlives a leader that died, and so how long the others wait
// then. Default the client's TTL; at most its MaxTTL.
func WithLeaseTTL(ttl time.Duration) ElectorOption {
	return func(e *Elector) { e.ttl = ttl }
}

// WithGuard is how far a new leader's tick has to be from the last one of the leader before. It
// has to be more than timers are late and clocks apart, and less than the shortest interval
// between two ticks of a job. Default 500 ms.
func WithGuard(d time.Duration) ElectorOption {
	return func(e *Elector) { e.guard = d }
}

// WithOnChange makes f be told when this replica begins (true) and ceases (false) to lead. Calls
// come one after the other, from a goroutine that nothing waits for: by the time f is called the
// answer of IsLeader has changed already.
func WithOnChange(f func(leading bool)) ElectorOption {
	return func(e *Elector) { e.onChange = f }
}

// NewElector begins to campaign for the leadership of that name. It does not block. Close it when
// the replica ends. Errors match redlock.ErrInvalid.
func NewElector(c *redlock.Client, name string, opts ...ElectorOption) (*Elector, error) {
	access := door.Open(c)
	if access.Engine == nil {
		return nil, fmt.Errorf("schedule: NewElector: %w: the client is nil", redlock.ErrInvalid)
	}
	e := &Elector{access: access, name: name, lease: "ql:lead:" + name, ttl: access.TTL,
		guard: DefaultGuard, ended: make(chan struct{})}
	var faults []error
	for _, opt := range opts {
		if opt == nil {
			faults = append(faults, invalid("an ElectorOption is nil"))
			continue
		}
		opt(e)
	}
	if err := errors.Join(append(faults, e.check())...); err != nil {
		return nil, fmt.Errorf("schedule: NewElector: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	go e.campaign(ctx)
	return e, nil
}

func (e *Elector) check() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, invalid(format, args...))
	}
	if e.name == "" {
		fault("name is empty")
	}
	if len(e.lease) > redlock.MaxNameLen {
		fault("name of %d bytes, at most %d", len(e.name), redlock.MaxNameLen-len("ql:lead:"))
	}
	drift := quorum.Drift(e.ttl, e.access.DriftFactor)
	switch {
	case e.ttl > e.access.MaxTTL:
		fault("WithLeaseTTL(%v): above Config.MaxTTL, %v", e.ttl, e.access.MaxTTL)
	case e.ttl <= drift:
		fault("WithLeaseTTL(%v): no validity is left after the drift allowance of %v", e.ttl, drift)
	}
	if e.guard <= 0 {
		fault("WithGuard(%v): must be positive", e.guard)
	}
	return errors.Join(faults...)
}

// IsLeader returns nil only if a majority of the nodes has confirmed, for this call, that the
// lease is this replica's: ask it at every tick, and only there. Every nil counts as a tick, so
// that for WithGuard from then on another leader runs none; to watch who leads there are Leader
// and WithOnChange. A standby is answered at once; a leader after one round, at most NodeTimeout,
// or when ctx ends. It is gocron.Elector; see AsLocker for a hook of gocron's that costs standbys
// less.
//
// A "no" matches redlock.ErrHeld: another replica leads, or led so shortly before that it may have
// run this tick (the RoundError says who and for how long); or redlock.ErrNoQuorum: it could not
// be decided; or redlock.ErrClosed: this Elector or its client is closed.
func (e *Elector) IsLeader(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("schedule: IsLeader: %w: the context is nil", redlock.ErrInvalid)
	}
	lock, err := e.holds()
	if err != nil {
		return err
	}
	reading := e.access.Clock.Now().Wall.Milliseconds()
	got := e.access.Engine.ConfirmLease(ctx, e.access.Hold(lock), reading, e.guard)
	switch {
	case errors.Is(got.Err, quorum.ErrStopped):
		got.Err = nil
		return e.no(redlock.ErrClosed, got)
	case got.Verdict == quorum.HoldKept && lock.Remaining() > 0:
		return nil
	case got.TooNear:
		return fmt.Errorf("%w (a leader before this one may have run this tick)",
			e.no(redlock.ErrHeld, got))
	case got.Tally.Rival >= e.access.Engine.Quorum():
		return e.no(redlock.ErrHeld, got)
	}
	return e.no(redlock.ErrNoQuorum, got)
}

// holds is the lease, if this replica has it as far as it knows by itself.
func (e *Elector) holds() (*redlock.Lock, error) {
	e.mu.Lock()
	term, closed := e.term, e.closed
	e.mu.Unlock()
	switch {
	case closed:
		return nil, e.no(redlock.ErrClosed, quorum.Confirmation{})
	case term != nil && term.lock.Remaining() > 0:
		return term.lock, nil
	}
	var last *redlock.RoundError
	if errors.As(e.access.Waiting(e.lease), &last) && errors.Is(last, redlock.ErrHeld) {
		return nil, fmt.Errorf("schedule: %q is led by another: %w", e.name, last)
	}
	return nil, e.no(redlock.ErrNoQuorum, quorum.Confirmation{})
}

// no is the error of an answer. When the client is closed that is why nobody can be asked.
func (e *Elector) no(kind error, got quorum.Confirmation) error {
	select {
	case <-e.access.Done:
		kind, got.Err, got.Errs = redlock.ErrClosed, nil, nil
	default:
	}
	return fmt.Errorf("schedule: %q: %w", e.name,
		e.access.HoldError("lead", e.name, kind, got))
}

// A Leader is who leads.
type Leader struct {
	Identity  string
	Self      bool          // it is this Elector
	Remaining time.Duration // of the lease, if it is not renewed
	Token     uint64        // fencing token of the lease
}

// Leader asks the nodes who leads. It blocks until all have answered, at most NodeTimeout, or
// until ctx ends. Errors: redlock.ErrNotHeld: nobody does; redlock.ErrNoQuorum; redlock.ErrClosed:
// the client is closed.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	if ctx == nil {
		return Leader{}, fmt.Errorf("schedule: Leader: %w: the context is nil", redlock.ErrInvalid)
	}
	seen, err := e.access.Engine.Inspect(ctx, e.lease)
	if errors.Is(err, quorum.ErrStopped) {
		return Leader{}, e.no(redlock.ErrClosed, quorum.Confirmation{})
	}
	if err != nil {
		return Leader{}, e.no(redlock.ErrNoQuorum, quorum.Confirmation{Err: err})
	}
	holder, votes, left := quorum.Strongest(seen)
	if votes < e.access.Engine.Quorum() {
		return Leader{}, e.nobody(seen)
	}
	leader := Leader{Identity: quorum.Identity(holder), Remaining: left}
	for _, s := range seen {
		if s.Holder == holder {
			leader.Token = max(leader.Token, s.Register)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	leader.Self = e.term != nil && e.access.Hold(e.term.lock).Token == holder
	return leader, nil
}

// nobody tells a lease that nobody has from one that could not be looked at.
func (e *Elector) nobody(seen []quorum.Inspection) error {
	var got quorum.Confirmation
	for i, s := range seen {
		if s.Err != nil {
			got.Errs = append(got.Errs, quorum.NodeErr{Node: i, Err: s.Err})
		}
	}
	if len(seen)-len(got.Errs) < e.access.Engine.Quorum() {
		return e.no(redlock.ErrNoQuorum, got)
	}
	return e.no(redlock.ErrNotHeld, got)
}

// Resign gives the leadership up and wakes the others, which takes milliseconds. This replica
// leaves it to them for a second before it campaigns again. It blocks until the lease is free, at
// most 2 x NodeTimeout, or until ctx ends. Without the leadership it does nothing.
func (e *Elector) Resign(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("schedule: Resign: %w: the context is nil", redlock.ErrInvalid)
	}
	e.mu.Lock()
	term := e.term
	e.mu.Unlock()
	if term == nil {
		return nil
	}
	done := make(chan error, 1)
	select {
	case term.resigns <- done:
	case <-term.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close resigns, if this replica leads, and stops campaigning. It blocks until the lease is free,
// at most 2 x NodeTimeout. It touches nothing of another leader's. The client stays open. Calling
// it again is fine.
func (e *Elector) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	<-e.ended
	return nil
}

// AsLocker is the same answer through gocron's other hook: gocron.WithDistributedLocker. Use it
// rather than gocron.WithDistributedElector: inside gocron, what an elector refuses costs memory
// and time that grow with every tick of a standby, and what a locker refuses does not.
func (e *Elector) AsLocker() gocron.Locker { return leaderLocker{e} }

// A leaderLocker locks what its elector leads.
type leaderLocker struct{ elector *Elector }

// Lock is IsLeader.
func (l leaderLocker) Lock(ctx context.Context, _ string) (gocron.Lock, error) {
	if err := l.elector.IsLeader(ctx); err != nil {
		return nil, err
	}
	return nothing{}, nil
}

// nothing is what has to be unlocked of a leadership.
type nothing struct{}

func (nothing) Unlock(context.Context) error { return nil }
