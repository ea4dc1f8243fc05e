package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// One test per step of the published algorithm, "Distributed Locks with Redis"
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), in its order. The
// sentences are shortened; what this library adds is in the tests after them.

const specTTL = redlock.DefaultTTL

// specDrift is "minus some milliseconds in order to compensate for clock drift between processes".
var specDrift = quorum.Drift(specTTL, redlock.DefaultDriftFactor)

// keysOf are the values of a key, by node.
func (r *rig) keysOf(name string) (values []string) {
	for _, n := range r.nodes {
		value, _ := n.Get(name)
		values = append(values, value)
	}
	return values
}

// "SET resource_name my_random_value NX PX 30000": a key with a value and an end, set only where
// there is none.
func TestSpecSingleInstanceAcquire(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(r *rig) {
		a, b := r.user(redlock.Config{Identity: "a"}), r.user(redlock.Config{Identity: "b"})
		r.take(a, "k")
		value := r.keysOf("k")[0]
		if quorum.Identity(value) != "a" || r.nodes[0].TTL("k") != specTTL {
			t.Errorf("key %q for %v, want a's for %v", value, r.nodes[0].TTL("k"), specTTL)
		}
		r.wantIs(r.try(b, "k"), redlock.ErrHeld)
		if got := r.keysOf("k")[0]; got != value || r.nodes[0].TTL("k") != specTTL {
			t.Errorf("after the rival's try: key %q for %v, want it as it was", got, r.nodes[0].TTL("k"))
		}
	})
}

// "Remove the key only if it exists and the value stored at the key is exactly the one I expect":
// "a client may acquire the lock, get blocked performing some operation for longer than the lock
// validity time, and later remove the lock, that was already acquired by some other client".
func TestSpecSingleInstanceReleaseOfAnothersKey(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(r *rig) {
		a, b := r.user(redlock.Config{Identity: "a"}), r.user(redlock.Config{Identity: "b"})
		l := r.take(a, "k", redlock.WithoutRenewal())
		a.cut(true, 0)
		time.Sleep(specTTL + time.Second)
		rival := r.take(b, "k")
		a.cut(false, 0)
		time.Sleep(time.Second)
		r.wantIs(l.Unlock(r.Context()), redlock.ErrNotHeld, redlock.ErrHeld)
		r.wantKeys("k", 1)
		r.wantHeld(rival)
	})
}

// "1. It gets the current time": the validity counts from before the first byte was sent.
func TestSpecStep1ValidityCountsFromTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		slow(90*time.Millisecond, r.nodes...)
		began := time.Now()
		l, err := a.TryLock(r.Context(), "k", redlock.WithoutRenewal())
		r.wantIs(err)
		if took := time.Since(began); took != 90*time.Millisecond {
			t.Fatalf("the round took %v, want 90ms", took)
		}
		if got, want := l.Remaining(), specTTL-90*time.Millisecond-specDrift; got != want {
			t.Errorf("validity %v, want TTL - elapsed - drift, %v", got, want)
		}
		if got, want := l.Until(), began.Add(specTTL-specDrift); !got.Equal(want) {
			t.Errorf("until %v, want %v", got, want)
		}
		time.Sleep(time.Second)
		began = time.Now()
		r.wantIs(l.Extend(r.Context()))
		if got, want := l.Until(), began.Add(specTTL-specDrift); !got.Equal(want) {
			t.Errorf("extended until %v, want %v: an extension, too, counts from its start", got, want)
		}
	})
}

// "2. It tries to acquire the lock in all the N instances, using the same key name and random value
// in all the instances." And a later acquisition uses another value.
func TestSpecStep2SameValueOnAllNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		first := r.take(a, "k")
		values := r.keysOf("k")
		if len(slices.Compact(slices.Clone(values))) != 1 || values[0] == "" {
			t.Errorf("values %q, want one and the same on all nodes", values)
		}
		r.wantIs(first.Unlock(r.Context()))
		synctest.Wait()
		r.take(a, "k")
		if again := r.keysOf("k"); again[0] == values[0] {
			t.Errorf("two acquisitions with one value, %q", again[0])
		}
	})
}

// "The client uses a timeout which is small compared to the total lock auto-release time ... if an
// instance is not available, we should try to talk with the next instance ASAP." Here all are asked
// at once, so nobody is waited for.
func TestSpecStep2UnavailableNodesCostNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		a.cut(true, 1, 3)
		began := time.Now()
		l := r.take(a, "k")
		r.wantTook(began, 0, 0)
		r.wantIs(l.Unlock(r.Context()))
		r.wantTook(began, 0, 0)
	})
}

// "3. If and only if the client was able to acquire the lock in the majority of the instances (at
// least 3) ... the lock is considered to be acquired."
func TestSpecStep3MajorityOfAllNodes(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 7; n++ {
		for up := range n + 1 {
			t.Run(fmt.Sprintf("nodes=%d/up=%d", n, up), func(t *testing.T) {
				t.Parallel()
				inBubble(t, n, func(r *rig) {
					a := r.user(redlock.Config{})
					for _, node := range r.nodes[up:] {
						node.Faults().Down(true)
					}
					l, err := a.TryLock(r.Context(), "k")
					if 2*up <= n {
						r.wantIs(err, redlock.ErrNoQuorum)
						return
					}
					r.wantIs(err)
					r.wantHeld(l)
				})
			})
		}
	}
}

// "... and the total time elapsed to acquire the lock is less than lock validity time": a round
// that took longer, because the machine was suspended meanwhile, is a failure.
func TestSpecStep3RoundLongerThanValidity(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{DisableRestartGuard: true})
		r.warm(a)
		slow(50*time.Millisecond, r.nodes...)
		time.AfterFunc(25*time.Millisecond, func() { a.clock.stepWall(specTTL) })
		r.wantIs(r.try(a, "k"), redlock.ErrNoQuorum)
		time.Sleep(time.Second)
		r.wantKeys("k", 0)
	})
}

// "4. If the lock was acquired, its validity time is considered to be the initial validity time
// minus the time elapsed."
func TestSpecStep4ValidityShrinks(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		l := r.take(r.user(redlock.Config{}), "k", redlock.WithoutRenewal())
		for elapsed := time.Duration(0); elapsed < specTTL-specDrift; elapsed += time.Second {
			if got, want := l.Remaining(), specTTL-specDrift-elapsed; got != want {
				t.Fatalf("after %v: %v remaining, want %v", elapsed, got, want)
			}
			r.wantHeld(l)
			time.Sleep(time.Second)
		}
		r.wantLost(l)
	})
}

// "5. If the client failed to acquire the lock for some reason, it will try to unlock all the
// instances (even the instances it believed it was not able to lock)."
func TestSpecStep5FailureUnlocksAllNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		for _, n := range r.nodes[:3] { // they lock, and their replies are lost
			n.Faults().LoseReplies(fakenode.Next(1))
		}
		ctx := r.within(50 * time.Millisecond)
		_, err := a.TryLock(ctx, "k")
		r.wantIs(err, redlock.ErrNoQuorum, context.DeadlineExceeded)
		synctest.Wait()
		r.wantKeys("k", 3)
		time.Sleep(2 * time.Second)
		r.wantKeys("k", 0)
	})
}

// Also where a rival has the majority, and this one got a node.
func TestSpecStep5RefusalUnlocksTheRest(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{Identity: "a"}), r.user(redlock.Config{Identity: "b"})
		r.warm(a)
		r.warm(b)
		a.cut(true, 3, 4)
		r.take(a, "k")
		slow(50*time.Millisecond, r.nodes[3:]...)
		r.wantIs(r.try(b, "k"), redlock.ErrHeld)
		time.Sleep(time.Second)
		for i, value := range r.keysOf("k") {
			if value != "" && quorum.Identity(value) != "a" {
				t.Errorf("node %d: %q is left behind, and b has no lock", i, value)
			}
		}
	})
}

// "Retry on failure: when a client is unable to acquire the lock, it should try again after a
// random delay in order to try to desynchronize multiple clients trying to acquire the lock for the
// same resource at the same time (this may result in a split brain condition where nobody wins)."
// Here somebody wins, without a random delay.
func TestSpecRetrySplitVotesFindAWinner(t *testing.T) {
	t.Parallel()
	for _, contenders := range []int{2, 3, 5, 10} {
		t.Run(fmt.Sprintf("contenders=%d", contenders), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				for i, n := range r.nodes {
					n.Faults().DelayRequests(fakenode.Jitter(uint64(i), 0, 2*time.Millisecond))
					n.Faults().DelayReplies(fakenode.Jitter(uint64(i)+9, 0, 2*time.Millisecond))
				}
				var users []*user
				for range contenders {
					users = append(users, r.user(redlock.Config{}))
					r.warm(users[len(users)-1])
				}
				for election := range 20 {
					name := fmt.Sprint("k", election)
					var mu sync.Mutex
					winners := 0
					var all sync.WaitGroup
					for _, u := range users {
						all.Go(func() {
							if _, err := u.TryLock(r.Context(), name); err == nil {
								mu.Lock()
								defer mu.Unlock()
								winners++
							}
						})
					}
					all.Wait()
					if winners != 1 {
						t.Errorf("election %d: %d winners of %d, want 1", election, winners, contenders)
					}
				}
			})
		})
	}
}

// A contender that yielded asks anew: the one that it yielded to may never win (protocol review,
// V2b and V2c).
func TestSpecRetryAfterAYield(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		// Two others that go first have a node each, and give them up.
		r.nodes[0].Set("k", "ql1:x/!", time.Minute)
		r.nodes[1].Set("k", "ql1:y/!!", time.Minute)
		time.AfterFunc(time.Millisecond, func() {
			r.nodes[0].Delete("k")
			r.nodes[1].Delete("k")
		})
		l, err := a.TryLock(r.Context(), "k")
		r.wantIs(err)
		r.wantHeld(l)
		r.wantIs(l.Unlock(r.Context()))
	})
}

// One lost reply must not make everybody give up: a silent node is asked once more before a yield
// (protocol review, V2a).
func TestSpecRetryAsksSilentNodesBeforeYielding(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		r.nodes[0].Set("k", "ql1:x/!", time.Minute) // goes first
		r.nodes[2].Faults().LoseReplies(fakenode.Next(1))
		before := r.keysOf("k")[1]
		_, err := a.TryLock(r.Context(), "k")
		r.wantIs(err)
		if n := r.nodes[1].Count("acquire"); before != "" || n != 2 { // one of them was to meet
			t.Errorf("%d acquires, want that of one attempt", n)
		}
	})
}

// When all attempts ended in split votes, that is said, and it is not "held": perhaps nobody is.
func TestSpecRetryIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		r.nodes[0].Set("k", "ql1:x/!", time.Minute)
		r.nodes[1].Set("k", "ql1:y/!!", time.Minute)
		began := time.Now()
		err := r.try(a, "k")
		r.wantIs(err, redlock.ErrNoQuorum)
		r.wantTook(began, time.Millisecond, 2*redlock.DefaultNodeTimeout)
		if text := err.Error(); strings.Contains(text, "held by") ||
			!strings.Contains(text, "; there is a key of x for another 1m0s") {
			r.Errorf("got %q, want that there is a key of x, and not that the lock is held", text)
		}
	})
}

// A message of an earlier attempt that arrives late must not take away what a later one has
// counted: every attempt has a token of its own (protocol review, P2).
func TestSpecRetryUsesAFreshValue(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		seen := make(map[string]bool)
		r.nodes[2].OnExecuted(func(e fakenode.Executed) {
			if e.Script == "acquire" && e.Args[0] == "k" {
				seen[e.Args[3]] = true
			}
		})
		r.nodes[0].Set("k", "ql1:x/!", time.Minute)
		r.nodes[1].Set("k", "ql1:y/!!", time.Minute)
		r.wantIs(r.try(a, "k"), redlock.ErrNoQuorum)
		synctest.Wait()
		if len(seen) != 3 {
			t.Errorf("three attempts used %d values, want 3", len(seen))
		}
	})
}

// "Releasing the lock is simple, and can be performed whether or not the client believes it was
// able to successfully lock a given instance."
func TestSpecReleaseOnAllNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		for _, n := range r.nodes[3:] {
			n.Faults().LoseReplies(fakenode.Next(1)) // they have the key, and we do not know
		}
		l := r.take(a, "k")
		r.wantKeys("k", 5)
		time.Sleep(time.Second)
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		r.wantKeys("k", 0)
	})
}

// A release that does not reach a node is repeated until the key is gone, or has ended.
func TestSpecReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		l := r.take(a, "k")
		a.cut(true, 0, 1)
		r.wantIs(l.Unlock(r.Context()))
		time.Sleep(time.Second)
		r.wantKeys("k", 2)
		a.cut(false, 0, 1)
		time.Sleep(time.Second)
		r.wantKeys("k", 0)
	})
}

// Nothing that was on its way may bring the key back after the release: not a plant either.
func TestSpecReleaseIsTheLastWord(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a := r.user(redlock.Config{})
		l := r.take(a, "k")
		r.nodes[2].Delete("k")
		slow(50*time.Millisecond, r.nodes[1])
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(r.Context()) }()
		synctest.Wait() // two have answered; the missing key will be planted when the last has
		r.wantIs(l.Unlock(r.Context()))
		<-extended
		time.Sleep(time.Second)
		r.wantKeys("k", 0)
	})
}

// "The key is set at different times, so the keys will also expire at different times. But if the
// first key was set at worst at time T1 and the last at worst at time T2, we are sure that the
// first key to expire in the set will exist for at least MIN_VALIDITY=TTL-(T2-T1)-CLOCK_DRIFT."
func TestSpecSafetyKeysOutliveTheValidity(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		r.warm(a)
		for i, n := range r.nodes {
			n.Faults().DelayRequests(fakenode.Fixed(time.Duration(i) * 20 * time.Millisecond))
			n.Drift(0.009 * float64(i%3-1))
		}
		l := r.take(a, "k", redlock.WithoutRenewal())
		time.Sleep(l.Remaining() - time.Millisecond)
		r.wantHeld(l)
		keys := 0
		for _, value := range r.keysOf("k") {
			if value != "" {
				keys++
			}
		}
		if keys < 3 {
			t.Errorf("a valid lock has %d keys, want a majority", keys)
		}
		time.Sleep(time.Millisecond)
		r.wantLost(l)
	})
}

// "During the time that the majority of keys are set, another client will not be able to acquire
// the lock."
func TestSpecSafetyNoSecondHolder(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		a.cut(true, 3, 4)
		l := r.take(a, "k", redlock.WithoutRenewal())
		for l.Remaining() > 0 {
			if err := r.try(b, "k"); err == nil {
				t.Fatalf("a second holder, and the first has %v", l.Remaining())
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// "Liveness: 1. The auto release of the lock (since keys expire): eventually keys are available
// again to be locked."
func TestSpecLivenessKeysEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.take(a, "k")
		a.cut(true, 0, 1, 2) // it is dead, as far as the nodes can know
		began := time.Now()
		l, err := b.Lock(r.within(time.Minute), "k")
		r.wantIs(err)
		r.wantTook(began, specTTL-specDrift, specTTL+100*time.Millisecond)
		r.wantIs(l.Unlock(r.Context()))
	})
}

// "2. Clients, usually, will cooperate removing the locks when the lock was not acquired, or when
// the lock was acquired and the work terminated, making it likely that we don't have to wait for
// keys to expire."
func TestSpecLivenessReleaseWakes(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		held := r.take(a, "k")
		time.AfterFunc(time.Second, func() { _ = held.Unlock(context.Background()) })
		began := time.Now()
		l, err := b.Lock(r.within(time.Minute), "k")
		r.wantIs(err)
		r.wantTook(began, time.Second, time.Second+50*time.Millisecond)
		r.wantIs(l.Unlock(r.Context()))
	})
}

// "Performance, crash recovery and fsync": "an instance that restarted without its data makes it
// possible for another client to acquire a lock that is held ... delayed restarts: we just need to
// make an instance, after a crash, unavailable for at least a bit more than the max TTL we use."
func TestSpecDelayedRestarts(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		r.warm(b)
		a.cut(true, 2) // a has the lock on the first two only
		l := r.take(a, "k", redlock.WithoutRenewal())
		a.cut(true, 0, 1)
		r.nodes[1].Forget()
		forgot := time.Now()
		for r.try(b, "k") != nil {
			if time.Since(forgot) > specTTL+time.Second {
				t.Fatal("the node that forgot gives no vote for more than MaxTTL")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if since := time.Since(forgot); since < specTTL || l.Remaining() > 0 {
			t.Errorf("b has the lock %v after a node forgot, and a's is valid for another %v",
				since, l.Remaining())
		}
	})
}

// "Making the algorithm more reliable: extending the lock": "the client may extend the lock by
// sending a Lua script to all the instances that extends the TTL of the key if the key exists and
// its value is still the random value the client assigned".
func TestSpecExtend(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		l := r.take(r.user(redlock.Config{}), "k", redlock.WithoutRenewal())
		time.Sleep(5 * time.Second)
		r.wantIs(l.Extend(r.Context()))
		synctest.Wait()
		if got, want := l.Remaining(), specTTL-specDrift; got != want {
			t.Errorf("%v remaining, want %v", got, want)
		}
		for i, n := range r.nodes {
			if left := n.TTL("k"); left != specTTL {
				t.Errorf("node %d: the key lives for %v, want %v", i, left, specTTL)
			}
		}
	})
}

// "The client should only consider the lock re-acquired if it was able to extend the lock into the
// majority of instances, and within the validity time."
func TestSpecExtendNeedsAMajority(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		l := r.take(a, "k", redlock.WithoutRenewal())
		time.Sleep(time.Second)
		a.cut(true, 0, 1, 2)
		until := l.Until()
		r.wantIs(l.Extend(r.Context()), redlock.ErrNoQuorum)
		if !l.Until().Equal(until) {
			t.Errorf("until %v, want it unchanged, %v", l.Until(), until)
		}
		r.wantHeld(l)
	})
}

func TestSpecExtendWithinTheValidity(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a := r.user(redlock.Config{})
		l := r.take(a, "k", redlock.WithoutRenewal())
		time.Sleep(l.Remaining() - 50*time.Millisecond)
		slow(75*time.Millisecond, r.nodes...) // every node says yes, too late
		r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
		r.wantLost(l)
		time.Sleep(time.Second)
		r.wantKeys("k", 0)
	})
}

// Only nodes that still had the key count; where it is missing, it is planted, and counts later.
func TestSpecExtendDoesNotCountPlantedKeys(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		l := r.take(r.user(redlock.Config{}), "k", redlock.WithoutRenewal())
		for _, n := range r.nodes[:2] {
			n.Delete("k")
		}
		r.wantIs(l.Extend(r.Context()))
		synctest.Wait()
		r.wantKeys("k", 5)
		for _, n := range r.nodes[:3] {
			n.Delete("k")
		}
		r.wantIs(l.Extend(r.Context()), redlock.ErrLost)
		r.wantLost(l)
	})
}

// "The lock can be extended by clients that hold it as long as they want" - unless it was bounded.
func TestSpecExtendIsLimited(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		l := r.take(a, "k", redlock.WithMaxHold(30*time.Second))
		began := time.Now()
		<-l.Lost()
		r.wantTook(began, 29*time.Second, 30*time.Second)
		r.wantLost(l)
		if _, err := b.Lock(r.within(time.Minute), "k"); err != nil {
			t.Errorf("the next: %v", err)
		}
		r.wantTook(began, 29*time.Second, 31*time.Second)
	})
}

// Kleppmann's answer to the specification asks for tokens that grow, so that a resource can refuse
// whoever is late ("How to do distributed locking", 2016).
func TestSpecFencingTokensGrow(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		a.clock.stepWall(time.Hour) // a's proposals are far ahead, and all that follow have to be
		var last uint64
		for i := range 20 {
			u := a
			if i%2 == 1 {
				u = b
			}
			l := r.take(u, "k")
			if l.Token() <= last {
				t.Fatalf("holder %d has token %d, the one before had %d", i, l.Token(), last)
			}
			last = l.Token()
			r.wantIs(l.Unlock(r.Context()))
			synctest.Wait()
		}
	})
}
