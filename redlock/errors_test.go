package redlock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// says wants the text of an error to be this one.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// "0 of 5 nodes" beside "held" read as if no node had answered; and "for another 10s" as a promise.
func TestTextOfAHeldLock(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		r.take(r.user(redlock.Config{Identity: "web-3:4711"}), "k")
		b := r.user(redlock.Config{})
		r.warm(b)
		says(t, r.try(b, "k"), `redlock: lock "k": held by another; 0 of 5 votes, 3 needed; `+
			`held by web-3:4711 for another 10s unless renewed`)
		synctest.Wait()
	})
}

// Whoever takes a lock twice waits for itself, and should be able to see it.
func TestTextOfALockThatIsOnesOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{Identity: "web-3:4711"})
		r.take(a, "k")
		own := `; held by web-3:4711, this client's own identity, for another `
		if text := fmt.Sprint(r.try(a, "k")); !strings.Contains(text, own) {
			t.Errorf("got %q, want %q", text, own)
		}
		_, err := a.Lock(r.within(time.Second), "k")
		if text := fmt.Sprint(err); !strings.Contains(text, own) {
			t.Errorf("after a wait: got %q, want %q", text, own)
		}
		b := r.user(redlock.Config{Identity: "web-4:4711"})
		if text := fmt.Sprint(r.try(b, "k")); strings.Contains(text, "own") {
			t.Errorf("another's: got %q", text)
		}
		synctest.Wait()
	})
}

// How long nodes wait until they vote again says nothing of the key that another one has.
func TestTextOfNodesThatWaitBesideAKey(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		r.nodes[1].Forget()
		r.nodes[2].Forget()
		r.nodes[0].Set("k", "ql1:web-3:4711/!", 2*time.Second)
		slow(10*time.Millisecond, r.nodes[1:]...) // else the two may have decided before the first answers
		err := r.try(u, "k")
		r.wantIs(err, redlock.ErrNoQuorum)
		if left := r.round(err).Remaining; left <= 2*time.Second {
			r.Fatalf("Remaining is %v, want that of the nodes, which wait for longer", left)
		}
		if text := err.Error(); !strings.Contains(text, "there is a key of web-3:4711;") {
			r.Errorf("got %q, want no time behind whose key there is", text)
		}
	})
}

// "4 of 5, 3 needed" beside "no quorum" read as a contradiction.
func TestTextOfEnoughVotesInVain(t *testing.T) {
	t.Parallel()
	t.Run("they came too late", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 5, func(r *rig) {
			u := r.user(redlock.Config{TTL: time.Second})
			r.warm(u)
			slow(10*time.Millisecond, r.nodes...)
			time.AfterFunc(5*time.Millisecond, func() { u.clock.stepWall(2 * time.Second) })
			err := r.try(u, "k")
			r.wantIs(err, redlock.ErrNoQuorum)
			says(t, err, fmt.Sprintf(`redlock: lock "k": no quorum; %d of 5 votes, 3 needed, but the `+
				`round took longer than the validity of a TTL of 1s`, r.round(err).Votes))
			time.Sleep(time.Second)
		})
	})
	t.Run("the fencing token was not taken", func(t *testing.T) {
		t.Parallel()
		inBubble(t, 3, func(r *rig) {
			u := r.user(redlock.Config{})
			r.warm(u)
			ahead := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
			r.nodes[0].SetHash("ql:h:k", map[string]string{"token": ahead}, time.Hour)
			r.nodes[1].Refuse("ERR no", "raise")
			r.nodes[2].Refuse("ERR no", "raise", "acquire")
			err := r.try(u, "k")
			r.wantIs(err, redlock.ErrNoQuorum)
			if text := err.Error(); !strings.Contains(text,
				"; 2 of 3 votes, 2 needed, but too few nodes took the fencing token in time; ") {
				t.Errorf("got %q, want that the votes were enough and what was not", text)
			}
		})
	})
}

// What an Unlock finds gone by itself are no votes for anything.
func TestTextOfAnUnlockAfterALoss(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		u := r.user(redlock.Config{TTL: time.Second})
		r.warm(u)
		l := r.take(u, "k", redlock.WithoutRenewal())
		time.Sleep(2 * time.Second)
		err := l.Unlock(r.Context())
		r.wantIs(err, redlock.ErrNotHeld, redlock.ErrLost)
		says(t, err, `redlock: unlock "k": not held, lost (its validity is over)`)
		l = r.take(u, "k", redlock.WithMaxHold(500*time.Millisecond))
		time.Sleep(time.Second)
		err = l.Unlock(r.Context())
		r.wantIs(err, redlock.ErrNotHeld, redlock.ErrLost)
		says(t, err, `redlock: unlock "k": not held, lost (it was held for its WithMaxHold of 500ms)`)
	})
}

// What several nodes say is told once, and each keeps its NodeError.
func TestTextOfNodesThatSayTheSame(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		u := r.user(redlock.Config{})
		r.warm(u)
		for _, i := range []int{0, 2} {
			r.nodes[i].SetHash("k", map[string]string{"the application's": "data"}, 0)
		}
		r.nodes[1].Faults().Down(true)
		err := r.try(u, "k")
		r.wantIs(err, redlock.ErrNoQuorum)
		text := err.Error()
		if !strings.Contains(text, "; nodes node0:6379, node2:6379: lock: the name is in "+
			"use for something that is not a lock: WRONGTYPE ") ||
			strings.Count(text, "WRONGTYPE") != 1 || !strings.Contains(text, "; node node1:6379: lock: ") {
			t.Errorf("got %q, want WRONGTYPE once, with its two nodes, and what is with node1", text)
		}
		var names []string
		for _, e := range r.round(err).Unwrap() {
			var node *redlock.NodeError
			if errors.As(e, &node) {
				names = append(names, node.Node)
			}
		}
		want := []string{"node0:6379", "node1:6379", "node2:6379"}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("NodeErrors of %q, want of %q", names, want)
		}
	})
}
