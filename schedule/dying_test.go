package schedule

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/door"
)

// A winner that dies before its commit costs no tick, whatever it held by then: another one runs
// it, within Grace. It is cut off from all nodes at each moment of its claim.
func TestAWinnerThatDiesAtAnyMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		time.Sleep(90 * second)
		got, taken := 0, 0
		for cut := time.Duration(0); cut < 8*time.Millisecond; cut += 100 * time.Microsecond {
			dying := f.client("a", 0)
			access := door.Open(dying)
			a := &claimer{access: access, job: "job", turns: newTurns(access.NodeTimeout),
				now: func() time.Time { return access.Clock.Now().Time() }}
			b := f.claimer("b", "job")
			d := tickAt(time.Now())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = a.claim(t.Context(), d)
			}()
			time.Sleep(cut)
			for _, n := range f.nodes.Nodes() {
				n.Cut(dying)
			}
			g, err := b.claim(t.Context(), d)
			switch {
			case err == nil:
				got++
				_ = g.lock.Unlock(t.Context())
			case errors.Is(err, ErrTickTaken) && !strings.Contains(err.Error(), "passed over"):
				taken++ // the commit was on its way
			default:
				t.Errorf("cut off %v into its claim: another got %v, want the tick", cut, err)
			}
			<-done
			time.Sleep(15 * second) // until all that a may have held has ended
		}
		if got < 15 || taken == 0 {
			t.Errorf("of the deaths %d were before the commit, %d after it", got, taken)
		}
	})
}
