package quorum

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/clock"
)

// An attempt whose end is long over, or was never set, waits for nothing.
func TestAnAttemptThatIsOverDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(nil, Settings{MaxTTL: time.Minute, Clock: clock.System{}})
		time.Sleep(time.Second) // the engine began before
		a := e.newAttempt(Claim{Name: "a", Token: "t", TTL: time.Second})
		began := time.Now()
		var timer *time.Timer
		<-a.after(&timer, 3*time.Second)
		if took := time.Since(began); took > 0 {
			t.Errorf("waited for %v, want not at all", took)
		}
	})
}
