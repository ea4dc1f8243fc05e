package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Whoever corrects one option should not have to learn of the next by another try.
func TestAllFaultsOfOptionsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	const invalid = `redlock: lock "k": invalid: `
	for _, c := range []struct {
		name string
		opts []redlock.LockOption
		want []string
	}{
		{"no TTL, and MinHold above any", []redlock.LockOption{
			redlock.WithTTL(0), redlock.WithMinHold(time.Hour)},
			[]string{"WithTTL(0s): must be positive", "WithMinHold(1h0m0s): above Config.MaxTTL, 1m0s"}},
		{"a TTL that is too long, and MinHold above MaxHold", []redlock.LockOption{
			redlock.WithTTL(time.Hour), redlock.WithMinHold(30 * time.Second),
			redlock.WithMaxHold(20 * time.Second)},
			[]string{"WithTTL(1h0m0s): above Config.MaxTTL, 1m0s",
				"WithMinHold(30s): above WithMaxHold, 20s"}},
		{"no TTL, and a MaxHold that leaves nothing", []redlock.LockOption{
			redlock.WithTTL(-1), redlock.WithMaxHold(time.Millisecond)},
			[]string{"WithTTL(-1ns): must be positive", "WithMaxHold(1ms): leaves no validity after " +
				"the drift allowance of 2.01ms"}},
		{"nil, and others", []redlock.LockOption{
			nil, redlock.WithMinHold(-1), redlock.WithTTL(0)},
			[]string{"a LockOption is nil", "WithMinHold(-1ns): must be positive",
				"WithTTL(0s): must be positive"}},
		{"no TTL, and a MinHold that others would allow", []redlock.LockOption{
			redlock.WithTTL(0), redlock.WithMinHold(30 * time.Second)},
			[]string{"WithTTL(0s): must be positive"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(r *rig) {
				err := r.try(r.user(redlock.Config{MaxTTL: time.Minute}), "k", c.opts...)
				r.wantIs(err, redlock.ErrInvalid)
				says(t, err, invalid+strings.Join(c.want, "\n"+invalid))
			})
		})
	}
}
