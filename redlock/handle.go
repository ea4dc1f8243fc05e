package redlock

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// handleMark begins every handle, with the version of its form.
const handleMark = "qlh1."

// A handle is a held lock as text, from Detach to Resume.
type handle struct {
	Prefix  []byte    `json:"p"` // bytes: a name need not be UTF-8
	Name    []byte    `json:"n"`
	Token   string    `json:"o"`
	Fencing uint64    `json:"f"`
	TTL     int64     `json:"t"` // ns: the longest that a key may live
	Until   time.Time `json:"u"` // the keys have ended by then, on the clock of who detached
	Voters  []string  `json:"v"` // addresses of the nodes whose word that they have the key counts
}

// Detach ends this Lock without freeing it, and returns a handle with which one Resume, here or in
// another process, goes on holding it under the same fencing token and without a gap. Nobody
// renews the lock in between: resume it within its TTL. Whoever has the handle can take the lock.
// It does not block. The Lock's context ends, with a cause that matches ErrNotHeld.
//
// Errors: ErrLost, ErrNotHeld, ErrClosed: there is nothing to detach.
func (l *Lock) Detach() (string, error) {
	if l == nil || l.client == nil {
		return "", &RoundError{Op: "detach", kinds: []error{ErrNotHeld}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge()
	if l.state != held {
		return "", l.overError("detach")
	}
	payload, err := json.Marshal(handle{
		Prefix: []byte(l.client.cfg.Prefix), Name: []byte(l.name), Token: l.token,
		Fencing: l.fencing, TTL: int64(l.keyLife),
		Until: l.until.Time().Add(l.drift()).UTC(), Voters: l.client.addrsOf(l.voters),
	})
	if err != nil {
		return "", fmt.Errorf("redlock: detach %q: %w", l.name, err)
	}
	l.finish(detached, &RoundError{Op: "hold", Name: l.name, kinds: []error{ErrNotHeld},
		detail: "it was detached"})
	text := base64.RawURLEncoding.EncodeToString(payload)
	return fmt.Sprintf("%s%s.%08x", handleMark, text, crc32.ChecksumIEEE(payload)), nil
}

// parseHandle reads a handle, and says what is wrong with one that is not whole.
func parseHandle(text string) (handle, error) {
	var h handle
	rest, ok := strings.CutPrefix(text, handleMark)
	body, sum, whole := strings.Cut(rest, ".")
	switch {
	case !ok:
		return h, invalid("handle: it does not begin with %q, as what Detach returns does", handleMark)
	case !whole || len(sum) < 8:
		return h, invalid("handle: it is truncated")
	case len(sum) > 8:
		return h, invalid("handle: it goes on behind its end")
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || fmt.Sprintf("%08x", crc32.ChecksumIEEE(payload)) != sum {
		return h, invalid("handle: it was altered or truncated")
	}
	if err := json.Unmarshal(payload, &h); err != nil {
		return h, invalid("handle: %v", err)
	}
	return h, nil
}

// Resume goes on holding what Detach has let go of: the name is the handle's, the fencing token
// stays. The client must list the same nodes, under the same addresses, in whatever order (Sentinel
// clients, which have no address, in the same order). It first changes the owner token on the
// nodes, so that of several calls with one handle one at the most succeeds, and the Lock that was
// detached can touch nothing any more. The options are those of this call: the handle carries none,
// and WithMinHold and WithMaxHold count anew. It blocks for one round, at most NodeTimeout, and at
// most until ctx ends.
//
// Errors: ErrInvalid: the handle is not whole, or of a client with another Prefix or other nodes.
// ErrLost: its lock has ended, or was resumed before (with ErrHeld if another holds it).
// ErrNoQuorum: too few nodes answered; the handle can be tried again while its TTL lasts.
// ErrClosed, or the context's
// error.
func (c *Client) Resume(ctx context.Context, text string, opts ...LockOption) (*Lock, error) {
	h, err := parseHandle(text)
	if err != nil {
		return nil, during("resume", "", err)
	}
	name := string(h.Name)
	if !c.made() {
		return nil, during("resume", name, errNotMade)
	}
	if string(h.Prefix) != c.cfg.Prefix {
		return nil, during("resume", name,
			invalid("handle: it is of a client with Prefix %q, this one has %q", h.Prefix, c.cfg.Prefix))
	}
	o, err := c.options(opts)
	if err != nil {
		return nil, during("resume", name, err)
	}
	if err := c.begin(ctx, "resume", name); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	token := quorum.NewToken(c.cfg.Identity)
	voters := c.nodesAt(h.Voters)
	if voters.Len() < c.engine.Quorum() {
		return nil, during("resume", name, invalid("handle: it is of a client "+
			"with the nodes %s; a majority of this one's must be among them, under the same address",
			strings.Join(h.Voters, ", ")))
	}
	o.keyLife = time.Duration(h.TTL) // a key is never shortened
	x := c.engine.Swap(ctx, name, h.Token, token, o.ttl, voters)
	if x.Verdict != quorum.HoldKept {
		return nil, c.resumeError(name, h, x)
	}
	return c.keep(ctx, name, o, quorum.Outcome{
		Verdict: quorum.Won, Votes: x.Tally.Ours, Errs: x.Errs, Started: x.Started, Token: token,
		Fencing: h.Fencing, Touched: voters, Unsure: voters &^ x.Voters, Voters: x.Voters,
	})
}

// addrOf is what a handle calls a node by: the address, without the place that a client of the
// user's has in the list. A Sentinel client's address is a placeholder, so those keep their place.
func (c *Client) addrOf(i int) string {
	if i < len(c.cfg.Clients) {
		if addr := c.cfg.Clients[i].Options().Addr; addr != sentinelAddr {
			return addr
		}
	}
	return c.engine.NodeName(i)
}

// addrsOf are the addresses of the nodes in a set.
func (c *Client) addrsOf(set quorum.Set) (addrs []string) {
	for i := range c.engine.Nodes() {
		if set.Has(i) {
			addrs = append(addrs, c.addrOf(i))
		}
	}
	return addrs
}

// nodesAt are the client's nodes that have one of the addresses.
func (c *Client) nodesAt(addrs []string) (set quorum.Set) {
	for i := range c.engine.Nodes() {
		if slices.Contains(addrs, c.addrOf(i)) {
			set |= 1 << i
		}
	}
	return set
}

// resumeError says why a handle could not be resumed.
func (c *Client) resumeError(name string, h handle, x quorum.Extension) error {
	e := c.roundError("resume", name, x.Errs)
	e.Votes = x.Tally.Ours
	e.Holder, e.Remaining = quorum.Identity(x.Holder), x.Remaining
	switch {
	case errors.Is(x.Err, quorum.ErrStopped):
		e.kinds = []error{ErrClosed}
	case x.Err != nil:
		e.kinds = []error{ErrNoQuorum, x.Err}
	case x.Verdict == quorum.HoldUnknown:
		e.kinds = []error{ErrNoQuorum}
	case x.Tally.Rival >= c.engine.Quorum():
		e.kinds = []error{ErrLost, ErrHeld}
		e.detail = "the handle was resumed before, or its lock has ended and another has it"
	default:
		e.kinds = []error{ErrLost}
		e.detail = fmt.Sprintf("the handle's lock has ended; it was good until %s",
			h.Until.Format(time.RFC3339))
	}
	return e
}
