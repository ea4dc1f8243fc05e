package integration

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/integration/internal/monotonic"
	"github.com/quorumlock/quorumlock/redlock"
)

// The checker can fail: locks that are broken on purpose, by what the documentation forbids, on
// real nodes. The same steps without the break are legal.

// A witness writes down what two clients believe of one name.
type witness struct {
	*rig
	history history
}

// gains takes the lock; ok says whether it could be had.
func (w *witness) gains(
	client int, c *redlock.Client, opts ...redlock.LockOption,
) (*redlock.Lock, bool) {
	e := entry{Client: client, Kind: gained, Name: "k", Call: monotonic.Now()}
	l, err := c.TryLock(w.Context(), "k", opts...)
	e.Return = monotonic.Now()
	if err != nil {
		e.Kind = failed
	} else {
		e.Token = l.Token()
	}
	w.history.entries = append(w.history.entries, e)
	return l, err == nil
}

// looks looks whether it is still held.
func (w *witness) looks(client int, l *redlock.Lock) {
	e := entry{Client: client, Kind: seen, Name: "k", Token: l.Token(), Call: monotonic.Now()}
	if l.Remaining() > 0 {
		e.Return = monotonic.Now()
		w.history.entries = append(w.history.entries, e)
	}
}

func (w *witness) releases(client int, l *redlock.Lock) {
	e := entry{Client: client, Kind: ended, Name: "k", Token: l.Token(), Call: monotonic.Now()}
	w.free(l)
	e.Return = monotonic.Now()
	w.history.entries = append(w.history.entries, e)
}

func TestTheCheckerCatchesBrokenLocks(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second
	// Each is played whole and broken. a and b are over the same five nodes.
	double := func(between func(*witness)) func(w *witness, a, b *redlock.Client) {
		return func(w *witness, a, b *redlock.Client) {
			first, ok := w.gains(0, a, redlock.WithoutRenewal())
			if !ok {
				w.Fatal("the first has no lock")
			}
			if between != nil {
				between(w)
			}
			w.gains(1, b, redlock.WithoutRenewal())
			w.looks(0, first)
		}
	}
	restart := func(w *witness) {
		each(w.rig, 3, w.Nodes, (*Node).Kill)
		each(w.rig, 3, w.Nodes, (*Node).StartEmpty)
	}
	for what, tc := range map[string]struct {
		a, b  redlock.Config
		nodes func(addrs []string) (a, b []string) // nil: both use all
		play  func(w *witness, a, b *redlock.Client)
		legal bool
	}{
		"whole":                        {play: double(nil), legal: true},
		"whole, nodes restarted empty": {play: double(restart), legal: true},
		"no guard, nodes restarted empty": {
			a: redlock.Config{DisableRestartGuard: true}, b: redlock.Config{DisableRestartGuard: true},
			play: double(restart),
		},
		"released by somebody who does not own it": {
			play: double(func(w *witness) { w.do(5, "DEL", "k") }),
		},
		"majorities of other nodes": {
			nodes: func(addrs []string) (a, b []string) { return addrs[:3], addrs[2:] },
			play:  double(nil),
		},
		"keys overwritten on a majority": {
			play: double(func(w *witness) { w.overwrite(3) }),
		},
		"whole, one after the other": {
			play: func(w *witness, a, b *redlock.Client) {
				for client, c := range []*redlock.Client{a, b} {
					l, ok := w.gains(client, c)
					if !ok {
						w.Fatal("no lock")
					}
					w.looks(client, l)
					w.releases(client, l)
					w.gone(10*time.Second, "k")
				}
			}, legal: true,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := &witness{rig: on(t, 5)}
			tc.a.TTL, tc.b.TTL = ttl, ttl
			tc.a.NodeTimeout, tc.b.NodeTimeout = time.Second, time.Second
			w.admitted(redlock.Config{TTL: ttl})
			if tc.nodes != nil {
				tc.a.Addrs, tc.b.Addrs = tc.nodes(w.Addrs())
			}
			tc.play(w, w.open(tc.a), w.open(tc.b))
			result, picture, err := w.history.check("broken-" + strings.ReplaceAll(what, " ", "-"))
			w.must(err)
			if picture != "" {
				w.must(os.Remove(picture)) // it is as it should be
			}
			want := porcupine.Illegal
			if tc.legal {
				want = porcupine.Ok
			}
			if result != want {
				t.Errorf("porcupine says %v, want %v, of %+v", result, want, w.history.entries)
			}
		})
	}
}

// overwrite takes the key away from the first nodes, until none has it any more: on a busy node the
// holder's own message may come after the first time.
func (w *witness) overwrite(count int) {
	w.within(20*time.Second, "the key is gone", func() bool {
		w.do(count, "SET", "k", "planted", "PX", 1)
		return w.becomes(time.Second, func() bool {
			return strings.Join(w.keys("k")[:count], "") == ""
		})
	})
}
