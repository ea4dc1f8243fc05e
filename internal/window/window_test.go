package window

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A row is those who want in, in a bubble.
type row struct {
	*testing.T
	*Window
}

const slack = 30 * time.Millisecond

func inBubble(t *testing.T, first, most int, f func(r *row)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(&row{t, New(first, most, slack)}) })
}

// enters wants so many places at once, and no more.
func (r *row) enters(n int) []Place {
	r.Helper()
	var places []Place
	for {
		ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
		p, err := r.Enter(ctx, Wait{})
		cancel()
		if err != nil {
			break
		}
		places = append(places, p)
	}
	if len(places) != n {
		r.Fatalf("%d places, want %d", len(places), n)
	}
	return places
}

func leave(places []Place, result Result) {
	for _, p := range places {
		p.Leave(result)
	}
}

func TestAWindowDoublesWhileAllGoesWell(t *testing.T) {
	inBubble(t, 2, 10, func(r *row) {
		places := r.enters(2)
		for _, want := range []int{3, 5, 9, 10, 10} {
			leave(places[1:], Smoothly) // one stays, or the window would begin anew
			places = append(places[:1], r.enters(want-1)...)
		}
		leave(places, Plain)
		r.enters(2)
	})
}

func TestAWindowIsHalvedOnceForAllThatGoBadlyTogether(t *testing.T) {
	inBubble(t, 8, 8, func(r *row) {
		old := r.enters(8)
		leave(old[:4], Badly)
		r.enters(0)
		leave(old[4:5], Badly) // 3 of the old are left
		young := r.enters(1)
		leave(young, Badly) // of the window as it is now
		leave(old[5:6], Plain)
		r.enters(0)
		leave(old[6:7], Plain)
		young = r.enters(1)
		leave(young, Badly) // down to one, and never to none
		r.enters(0)
		leave(old[7:], Badly)
		r.enters(8) // it was empty
	})
}

func TestAWindowGrowsSlowlyFromWhereItWasHalved(t *testing.T) {
	inBubble(t, 8, 100, func(r *row) {
		places := r.enters(8)
		leave(places[:1], Badly) // 4, and 7 of the old
		leave(places[1:7], Plain)
		places = append(places[7:], r.enters(3)...)
		places[0].Leave(Plain) // the last of the old
		places = append(places[1:], r.enters(1)...)
		for size := 4; size < 8; size++ {
			for i := range size {
				r.enters(0)
				places[i].Leave(Smoothly)
				p, err := r.Enter(r.Context(), Wait{})
				if err != nil {
					t.Fatal(err)
				}
				places[i] = p
			}
			places = append(places, r.enters(1)...)
		}
	})
}

func TestAWindowDoesNotGrowByTriesThatStoodInAQueue(t *testing.T) {
	inBubble(t, 3, 10, func(r *row) {
		places := r.enters(3)
		time.Sleep(time.Second) // the quickest
		places[0].Leave(Smoothly)
		places = append(places[1:], r.enters(2)...)
		began := time.Now()
		time.Sleep(2*time.Second + slack - time.Millisecond)
		places[2].Leave(Smoothly) // not much longer
		places[2] = r.enters(2)[0]
		time.Sleep(2 * time.Millisecond)
		if time.Since(began) <= 2*time.Second+slack {
			t.Fatal("the test goes wrong")
		}
		places[3].Leave(Smoothly)
		r.enters(1) // its own
	})
}

func TestThoseWhoWaitGoInOrder(t *testing.T) {
	inBubble(t, 1, 1, func(r *row) {
		first := r.enters(1)
		var mu sync.Mutex
		var got []int
		var all sync.WaitGroup
		for i, order := range []time.Duration{0, 0, 5 * time.Millisecond, 0} {
			all.Go(func() {
				p, err := r.Enter(r.Context(), Wait{Order: order})
				if err != nil {
					r.Error(err)
					return
				}
				mu.Lock()
				got = append(got, i)
				mu.Unlock()
				p.Leave(Plain)
			})
			synctest.Wait()
		}
		leave(first, Plain)
		all.Wait()
		if want := []int{0, 1, 3, 2}; !slices.Equal(got, want) {
			r.Errorf("in the order %v, want %v", got, want)
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	inBubble(t, 1, 1, func(r *row) {
		places := r.enters(1)
		began := time.Now()
		if _, err := r.Enter(r.Context(), Wait{By: began.Add(time.Second)}); !errors.Is(err, ErrNoTurn) ||
			time.Since(began) != time.Second {
			r.Errorf("after %v: %v; want ErrNoTurn after 1s", time.Since(began), err)
		}
		if _, err := r.Enter(r.Context(), Wait{By: began}); !errors.Is(err, ErrNoTurn) {
			r.Errorf("with a bound that has passed: %v; want ErrNoTurn", err)
		}
		closed := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(closed) })
		if _, err := r.Enter(r.Context(), Wait{Closed: closed}); !errors.Is(err, ErrClosed) {
			r.Errorf("closed: %v", err)
		}
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if _, err := r.Enter(ctx, Wait{}); !errors.Is(err, context.Canceled) {
			r.Errorf("cancelled: %v", err)
		}
		leave(places, Plain)
		// Nobody is left waiting for the place, and one that is free is given in any case.
		p, err := r.Enter(ctx, Wait{By: began, Closed: closed})
		if err != nil {
			r.Error(err)
		}
		p.Leave(Plain)
	})
}

// Places come back while waits end, at the same moments.
func TestNoPlaceIsLostOrGivenTwice(t *testing.T) {
	inBubble(t, 3, 7, func(r *row) {
		var inside, entered atomic.Int64
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				time.Sleep(time.Duration(i%10) * time.Millisecond)
				ctx, cancel := context.WithTimeout(r.Context(), time.Duration(i%100)*time.Millisecond)
				defer cancel()
				p, err := r.Enter(ctx, Wait{Order: time.Duration(i%5) * time.Millisecond})
				if err != nil {
					return
				}
				entered.Add(1)
				if n := inside.Add(1); n > 7 {
					r.Errorf("%d inside, at most 7", n)
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				p.Leave(Result(i % 3))
			})
		}
		all.Wait()
		if n := entered.Load(); n < 50 || n == 1000 {
			r.Errorf("%d of 1000 entered: want some, and not all", n)
		}
		r.enters(3) // as at first
	})
}
