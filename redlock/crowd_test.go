package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Nodes that take 100 us a command can do 2,500 within the NodeTimeout.
const (
	effort = 100 * time.Microsecond
	crowd  = 5000
)

// atOnce makes crowd calls at the same moment and counts the locks.
func (r *rig) atOnce(call func(name string) (*redlock.Lock, error)) (got int) {
	r.Helper()
	for _, n := range r.nodes {
		n.Faults().Effort(effort)
	}
	var locks atomic.Int64
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			l, err := call(fmt.Sprint("job-", i))
			switch {
			case err == nil:
				locks.Add(1)
				_ = l.Unlock(r.Context()) // what is late is freed in the background
			case !errors.Is(err, redlock.ErrNoQuorum):
				r.Error(err)
			}
		})
	}
	all.Wait()
	return int(locks.Load())
}

func TestACrowdOfLocksAllSucceed(t *testing.T) {
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		got := r.atOnce(func(name string) (*redlock.Lock, error) { return u.Lock(ctx, name) })
		if took := time.Since(began); got < crowd || took > 4*crowd*effort {
			t.Errorf("%d of %d in %v; two commands each take %v", got, crowd, took, 2*crowd*effort)
		}
	})
}

// More calls come than the nodes can answer, all the time. What they can do is done all the same: no
// place is given to a call that has no time left for its answer.
func TestUnderLastingOverloadTheNodesDoNothingInVain(t *testing.T) {
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		for _, n := range r.nodes {
			n.Faults().Effort(effort)
		}
		const offered, seconds = 16000, 3 // a second; they can do 5,000
		var locks atomic.Int64
		var all sync.WaitGroup
		for i := range offered * seconds / 160 { // 160 every 10 ms
			for j := range 160 {
				all.Go(func() {
					l, err := u.TryLock(r.Context(), fmt.Sprintf("job-%d-%d", i, j))
					if err == nil {
						locks.Add(1)
						_ = l.Unlock(r.Context())
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		if able := seconds * int64(time.Second/effort) / 2; locks.Load() < able*9/10 {
			t.Errorf("%d locks in %d s; the nodes do lock and unlock of %d", locks.Load(), seconds, able)
		}
	})
}

func TestACrowdOfTriesGetsWhatTheNodesCanDo(t *testing.T) {
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		most := 2 * redlock.DefaultNodeTimeout
		got := r.atOnce(func(name string) (*redlock.Lock, error) {
			began := time.Now()
			l, err := u.TryLock(r.Context(), name)
			if took := time.Since(began); took > most {
				t.Errorf("%s: TryLock took %v, at most %v", name, took, most)
			}
			return l, err
		})
		if able := int(most / effort / 2); got < able/2 {
			t.Errorf("%d got their lock, in a time in which the nodes do lock and unlock of %d", got, able)
		}
	})
}
