package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// The restart guard. A node that lost its memory must not vote for a rival of a lock that it has
// forgotten. The identity of a memory is master_replid; ql:node on the node says which memory the
// data belongs to and from when it votes. Each batch with guarded calls tells the scripts which
// identity to expect, and ends with INFO replication on the same connection: as an identity never
// comes back, the same one at the end was the same at each call before. Design.md, section 7.

// unknownLag is taken for min-replicas-max-lag where it cannot be read: Redis' default.
const unknownLag = 10 * time.Second

// A guard is what a lane knows of its node's memory. Guarded by lane.mu.
type guard struct {
	off      bool   // switched off, or the node has no INFO
	met      bool   // a first contact has succeeded
	identity string // expected; "" when it has to be asked for
	since    time.Duration
	from     time.Duration // 0 with since set: an operator let it vote
	max      time.Duration // the largest MaxTTL that the node has of its users
	told     time.Duration // the node's clock when it said so
	last     string        // the identity that said so; it stays when it has to be asked for anew
	refusal  error         // why it gives no vote at present, other than waiting
}

// wentBack reports whether an admission's answer is of another memory than the one before, and of
// one that was there already when that one was met: not a restart, but another server, or the one
// that the address led to earlier. It votes, and knows nothing of what was locked meanwhile.
func (g *guard) wentBack(reply script.Reply) bool {
	return g.last != "" && g.last != reply.Identity && reply.Since <= g.told
}

// overtaken reports whether an admission's answer is from before an operator's word that is known
// already: the two may have been under way at once.
func (g *guard) overtaken(reply script.Reply, mode string) bool {
	ago := g.told - reply.Time
	return mode == "" && g.identity == reply.Identity && g.since != 0 && g.from == 0 &&
		ago >= 0 && ago < time.Second
}

var (
	errMemoryChanged = errors.New("gives no vote: its memory changed while it was asked")
	errNeverAsked    = errors.New("gives no vote: nobody has asked it for one since its memory" +
		" is new")
	errNotPrimary = errors.New("gives no vote: it is a replica")
	errVotesTwice = errors.New("gives no vote: it has replicas and no min-replicas-to-write," +
		" so it could vote twice after a fail-over (or say TrustReplicas)")
)

// A WaitError is why a node gives no vote yet.
type WaitError struct {
	Left    time.Duration // by the node's clock, when it answered
	Stepped bool          // its clock was stepped; else its memory is new
}

func (e *WaitError) Error() string {
	why := "its memory is new"
	if e.Stepped {
		why = "its clock was stepped"
	}
	return fmt.Sprintf("gives no vote for another %v: %s", e.Left.Round(time.Millisecond), why)
}

// vouched runs a batch, its guarded calls under the guard.
func (l *lane) vouched(ctx context.Context, batch *Batch) error {
	if !batch.guarded() {
		return l.exec(ctx, batch)
	}
	refusal, err := l.introduce(ctx)
	if err != nil {
		return err
	}
	if refusal != nil {
		return l.withoutVotes(ctx, batch, refusal)
	}
	identity, off := l.expected()
	if off {
		err = l.exec(ctx, batch)
	} else if err = l.execGuarded(ctx, batch, identity); err == nil {
		err = l.again(ctx, batch)
	}
	if err == nil && batch.stepped {
		batch.void(l.stepError())
	}
	return err
}

// introduce learns what has to be known of a node before it votes: whether it is a node of its
// own, and which memory it has.
func (l *lane) introduce(ctx context.Context) (refusal, err error) {
	if refusal, err := l.checkFacts(ctx); refusal != nil || err != nil {
		return refusal, err
	}
	if identity, off := l.expected(); identity != "" || off {
		return nil, nil
	}
	return l.admit(ctx, "")
}

// void takes the word of the guarded calls back.
func (b *Batch) void(refusal error) {
	for i := range b.Calls {
		c := &b.Calls[i]
		if c.Guarded && c.Err == nil {
			c.Void = c.Reply != "" && (c.Reply[0] == script.Done || c.Reply[0] == script.Ours)
			c.Reply, c.Err = "", refusal
		}
	}
}

func (b *Batch) guarded() bool {
	for i := range b.Calls {
		if b.Calls[i].Guarded {
			return true
		}
	}
	return false
}

func (l *lane) expected() (identity string, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guard.identity, l.guard.off
}

// execGuarded runs the batch and takes the word of its guarded calls back unless INFO, after them,
// says that the memory is the one they were told to expect.
func (l *lane) execGuarded(ctx context.Context, batch *Batch, identity string) error {
	batch.Identity, batch.WantReplication = identity, true
	if err := l.exec(ctx, batch); err != nil {
		return err
	}
	refusal := l.judgeReplication(batch.Replication, batch.ReplicationErr, identity)
	if refusal != nil {
		batch.void(refusal)
	}
	return nil
}

// judgeReplication says why the memory that INFO shows gives no vote, and remembers it.
func (l *lane) judgeReplication(info string, infoErr error, identity string) (refusal error) {
	state := readReplication(info)
	switch {
	case infoErr != nil:
		refusal = fmt.Errorf("gives no vote: INFO: %w", infoErr)
	case state.role != "master":
		refusal = errNotPrimary
	case state.identity != identity:
		refusal = errMemoryChanged
	case state.replicas && !state.minToWrite && !l.engine.set.TrustReplicas:
		refusal = errVotesTwice
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guard.refusal = refusal
	if refusal != nil {
		l.guard.identity = "" // ask anew
		l.facts.due = true
	}
	return refusal
}

// replication is what INFO replication says, as far as the guard needs it.
type replication struct {
	role, identity string
	replicas       bool
	minToWrite     bool
}

func readReplication(info string) (r replication) {
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch key {
		case "role":
			r.role = value
		case "master_replid":
			r.identity = value
		case "connected_slaves":
			r.replicas = value != "0"
		case "min_slaves_good_slaves": // shown only where min-replicas-to-write is set
			r.minToWrite = true
		}
	}
	return r
}

// again repeats, once, guarded calls that were refused by a node with another identity than they
// were told: another client admitted its memory, perhaps long ago, or nobody yet, and then it
// begins to wait now. A mark in the node's future, which a clock that was stepped back leaves, is
// written anew.
func (l *lane) again(ctx context.Context, batch *Batch) error {
	var which []int
	renew := false
	changed := false
	for i := range batch.Calls {
		c := &batch.Calls[i]
		if c.Guarded && c.Err == errMemoryChanged && !c.Void {
			which, changed = append(which, i), true
			continue
		}
		if !c.Guarded || c.Err != nil || c.Reply == "" {
			continue
		}
		switch c.Reply[0] {
		case script.Unknown:
			which = append(which, i)
		case script.Waits:
			reply, err := script.ParseAcquire(c.Reply)
			renew = renew || err == nil && reply.Since > reply.Time
		}
	}
	if len(which) == 0 && !renew {
		return nil
	}
	ask := func() (refusal, err error) { return l.admit(ctx, "") }
	if changed { // perhaps it is another server altogether
		ask = func() (refusal, err error) { return l.introduce(ctx) }
	}
	refusal, err := ask()
	if err != nil {
		return err
	}
	identity, off := l.expected()
	if refusal != nil || off || len(which) == 0 {
		return nil // what they were answered is no vote either
	}
	part := Batch{}
	for _, i := range which {
		part.Calls = append(part.Calls, batch.Calls[i])
	}
	err = l.execGuarded(ctx, &part, identity)
	for k, i := range which {
		batch.Calls[i] = part.Calls[k]
	}
	batch.stepped = batch.stepped || part.stepped
	return err
}

// errNoVotes marks calls that were not sent because the node gives no vote.
var errNoVotes = errors.New("not sent")

type noVotes struct{ refusal error }

func (e *noVotes) Error() string   { return e.refusal.Error() }
func (e *noVotes) Unwrap() []error { return []error{e.refusal, errNoVotes} }

// withoutVotes runs those calls of a batch that need no vote.
func (l *lane) withoutVotes(ctx context.Context, batch *Batch, refusal error) error {
	part := Batch{}
	var which []int
	for i := range batch.Calls {
		if batch.Calls[i].Guarded {
			batch.Calls[i].Err = &noVotes{refusal}
			continue
		}
		part.Calls = append(part.Calls, batch.Calls[i])
		which = append(which, i)
	}
	if len(which) == 0 {
		return nil
	}
	err := l.exec(ctx, &part)
	for k, i := range which {
		batch.Calls[i] = part.Calls[k]
	}
	return err
}

// admit asks the node for its identity and settles from when it votes. The refusal is why it will
// give no vote now; err that it could not be asked.
func (l *lane) admit(ctx context.Context, mode string) (refusal, err error) {
	if l.engine.set.LookOnly && mode != "vote" {
		mode = "see"
	}
	batch := Batch{WantReplication: true,
		Calls: []Call{{Command: l.engine.admitMessage(l.lag(), mode)}}}
	if err := l.exec(ctx, &batch); err != nil {
		return nil, err
	}
	call := &batch.Calls[0]
	if call.Err != nil {
		return l.withoutInfo(ctx, call.Err, batch.ReplicationErr)
	}
	reply, err := script.ParseAdmit(call.Reply)
	switch {
	case err != nil:
		return err, nil
	case reply.Letter == script.Replica:
		refusal = errNotPrimary
	case reply.Letter == script.Exists && mode == "see":
		refusal = errNeverAsked
	case reply.Letter == script.Exists:
		return errBadAdmission, nil
	}
	l.mu.Lock()
	if refusal == nil && mode == "" && l.guard.wentBack(reply) {
		l.mu.Unlock()
		return l.admit(ctx, "renew")
	}
	defer l.mu.Unlock()
	l.guard.refusal = refusal
	l.guard.met = true
	if refusal == nil && !l.guard.overtaken(reply, mode) {
		l.guard.identity, l.guard.told = reply.Identity, reply.Time
		l.guard.last = reply.Identity
		l.guard.since, l.guard.from, l.guard.max = reply.Since, reply.From, reply.MaxTTL
		l.engine.noteMaxTTL(reply.MaxTTL)
	}
	return refusal, nil
}

var errBadAdmission = errors.New("answered nonsense to an admission")

// withoutInfo decides what to do with a node whose INFO fails. Where it is refused or unknown, and
// always was, there is no guard: no client can have left a mark. Everywhere else it is no vote.
func (l *lane) withoutInfo(ctx context.Context, cause, infoErr error) (refusal, err error) {
	refusal = fmt.Errorf("gives no vote: admission: %w", cause)
	l.mu.Lock()
	met := l.guard.met
	l.guard.refusal = refusal
	l.mu.Unlock()
	if met || infoErr == nil || !isRefused(infoErr) {
		return refusal, nil
	}
	batch := Batch{Calls: []Call{{Command: l.engine.admitMessage(0, "look")}}}
	if err := l.exec(ctx, &batch); err != nil {
		return nil, err
	}
	reply, parseErr := script.ParseAdmit(batch.Calls[0].Reply)
	if batch.Calls[0].Err != nil || parseErr != nil || reply.Letter != script.Exists ||
		reply.Register != 0 {
		return refusal, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.guard.off, l.guard.met, l.guard.refusal = true, true, nil
	return nil, nil
}

// isRefused reports whether a command is not to be had on a node: unknown there, or not allowed.
// miniredis says that its INFO has no such section, without an error code.
func isRefused(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "NOPERM") || strings.HasPrefix(text, "ERR") ||
		strings.HasSuffix(text, "is not supported")
}

// lag is how long an old primary may go on taking writes after a replica was promoted.
func (l *lane) lag() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.facts.known && l.facts.Lag > 0 {
		return l.facts.Lag
	}
	return unknownLag
}
