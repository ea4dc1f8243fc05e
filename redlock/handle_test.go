package redlock_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/redlock"
)

// detach is Detach of a lock that is held.
func (r *rig) detach(l *redlock.Lock) string {
	r.Helper()
	handle, err := l.Detach()
	if err != nil {
		r.Fatalf("Detach: %v", err)
	}
	return handle
}

// contents are the keys of a name on all nodes.
func (r *rig) contents(name string) string {
	var all []string
	for _, n := range r.nodes {
		text, _ := n.Get(name)
		all = append(all, text)
	}
	return fmt.Sprint(all)
}

// rival tries to take the name all the time, until stop is called, which returns how often it won.
func (r *rig) rival(u *user, name string) (stop func() int) {
	ctx, cancel := context.WithCancel(r.Context())
	wins := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if l, err := u.TryLock(ctx, name); err == nil {
				wins++
				l.Unlock(ctx)
			}
			time.Sleep(3 * time.Millisecond)
		}
	}()
	return func() int { cancel(); <-done; return wins }
}

// A key is never shortened, so one that is resumed for less lives on for what it was taken for: a
// node that does not hear of the release is asked to free it that long.
func TestResumedForLessIsFreedForLong(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		long := redlock.Config{MaxTTL: 30 * time.Second}
		a, b := r.user(long), r.user(long)
		// The others' votes come first, and only a voter's key is handed over as it is.
		slow(5*time.Millisecond, r.nodes[:2]...)
		handle := r.detach(r.take(a, "k", redlock.WithTTL(30*time.Second)))
		for range 2 { // also what is handed over once more
			l, err := b.Resume(r.Context(), handle, redlock.WithTTL(time.Second))
			r.wantIs(err)
			handle = r.detach(l)
		}
		l, err := b.Resume(r.Context(), handle, redlock.WithTTL(time.Second))
		r.wantIs(err)
		r.nodes[4].Faults().Partition(true)
		r.wantIs(l.Unlock(r.Context()))
		time.Sleep(10 * time.Second) // the second is over, the key is not
		if text, ok := r.nodes[4].Get("k"); !ok {
			t.Fatalf("the key on the node without a way is %q, want one", text)
		}
		r.nodes[4].Faults().Partition(false)
		time.Sleep(5 * time.Second)
		r.wantKeys("k", 0)
	})
}

func TestAHandedOverLockGoesOnWithoutAGap(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		slow(2*time.Millisecond, r.nodes...)
		a, b, rival := r.user(redlock.Config{}), r.user(redlock.Config{}), r.user(redlock.Config{})
		la := r.take(a, "k")
		stop := r.rival(rival, "k")
		time.Sleep(time.Second)
		handle := r.detach(la)
		if err := context.Cause(la.Context()); err == nil || la.Remaining() > 0 {
			r.Errorf("the detached lock: %v remaining, cause %v, want none and some", la.Remaining(), err)
		}
		time.Sleep(5 * time.Second) // a graceful restart
		lb, err := b.Resume(r.Context(), handle)
		r.wantIs(err)
		if lb.Token() != la.Token() || lb.Name() != "k" {
			r.Errorf("resumed as %q with token %d, want k, %d", lb.Name(), lb.Token(), la.Token())
		}
		time.Sleep(time.Minute) // it is renewed
		r.wantHeld(lb)
		if wins := stop(); wins > 0 {
			r.Errorf("a rival won %d times while the lock was handed over", wins)
		}
		r.wantIs(lb.Unlock(r.Context()))
		r.wantIs(r.try(rival, "k"))
	})
}

func TestADetachedLockTouchesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		la := r.take(a, "k")
		handle := r.detach(la)
		dead := func() {
			r.Helper()
			before := r.contents("k")
			r.wantIs(la.Unlock(r.Context()), redlock.ErrNotHeld)
			r.wantIs(la.Extend(r.Context()), redlock.ErrNotHeld)
			_, err := la.Detach()
			r.wantIs(err, redlock.ErrNotHeld)
			select {
			case <-la.Lost():
				r.Error("Lost is closed: it was handed over, not lost")
			default:
			}
			synctest.Wait()
			if after := r.contents("k"); after != before {
				r.Errorf("keys %s, want %s as before", after, before)
			}
		}
		dead()
		lb, err := b.Resume(r.Context(), handle)
		r.wantIs(err)
		synctest.Wait()
		dead()
		r.wantIs(a.Close()) // it frees what it holds, and that is nothing
		synctest.Wait()
		r.wantKeys("k", 3)
		time.Sleep(time.Minute)
		r.wantHeld(lb)
	})
}

// TestARenewalUnderWayAtDetach: what it is answered afterwards changes nothing.
func TestARenewalUnderWayAtDetach(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		la := r.take(a, "k", redlock.WithoutRenewal())
		r.nodes[0].Delete("k")
		slow(100*time.Millisecond, r.nodes...)
		result := make(chan error)
		go func() { result <- la.Extend(r.Context()) }()
		time.Sleep(50 * time.Millisecond)
		handle := r.detach(la)
		r.wantIs(<-result, redlock.ErrNotHeld)
		lb, err := b.Resume(r.Context(), handle)
		r.wantIs(err)
		time.Sleep(time.Minute)
		r.wantHeld(lb)
		if token, _ := r.nodes[0].Get("k"); token == "" {
			r.Error("the node without the key did not get it from who resumed")
		}
		r.wantIs(lb.Unlock(r.Context()))
		synctest.Wait()
		r.wantKeys("k", 0)
	})
}

// TestResumedAtOnce: at most one of several holds the lock, at every moment, whatever gets lost.
func TestResumedAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3+int(seed%3), func(r *rig) {
				la := r.take(r.user(redlock.Config{}), "k")
				handle := r.detach(la)
				for i, n := range r.nodes {
					n.Faults().DelayRequests(fakenode.Jitter(seed*10+uint64(i), 0, 20*time.Millisecond))
					n.Faults().DelayReplies(fakenode.Jitter(seed*10+5+uint64(i), 0, 20*time.Millisecond))
					if seed%2 == 0 && i == int(seed/2)%len(r.nodes) {
						n.Faults().LoseReplies(fakenode.Next(2))
					}
				}
				locks := make([]*redlock.Lock, 3)
				var all sync.WaitGroup
				for i := range locks {
					u := r.user(redlock.Config{})
					all.Go(func() {
						for range 3 { // as a supervisor would
							if l, err := u.Resume(r.Context(), handle); err == nil {
								locks[i] = l
								return
							}
						}
					})
				}
				all.Wait()
				for range 30 {
					holders := 0
					for _, l := range locks {
						if l.Remaining() > 0 {
							holders++
							if l.Token() != la.Token() {
								r.Errorf("token %d, want %d", l.Token(), la.Token())
							}
						}
					}
					if holders > 1 {
						r.Fatalf("%d hold the lock of one handle", holders)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

func TestHandlesThatCannotBeResumed(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, other := r.user(redlock.Config{}), r.user(redlock.Config{Prefix: "x:"})
		handle := r.detach(r.take(a, "k"))
		before := r.contents("k")
		payload := func(text string) string {
			return fmt.Sprintf("qlh1.%s.%08x", base64.RawURLEncoding.EncodeToString([]byte(text)),
				crc32.ChecksumIEEE([]byte(text)))
		}
		for name, text := range map[string]string{
			"empty": "", "garbage": strings.Repeat("\xff", 1<<20),
			"a long one":   "qlh1." + strings.Repeat("A", 1<<20) + ".00000000",
			"of tomorrow":  "qlh2." + handle[5:],
			"twice":        handle + handle,
			"with a space": handle + " ",
			"no JSON":      payload("\x00"),
			"empty inside": payload("{}"),
			"a name of 1M": payload(`{"n":"` + strings.Repeat("QUFB", 1<<18) + `","o":"x"}`),
			"our own name": payload(`{"n":"cWw6bm9kZQ","o":"x"}`),
			"no numbers":   payload(`{"n":"aw==","o":1}`),
		} {
			_, err := a.Resume(r.Context(), text)
			r.wantIs(err, redlock.ErrInvalid)
			if len(fmt.Sprint(err)) > 500 {
				r.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
		}
		_, err := other.Resume(r.Context(), handle)
		r.wantIs(err, redlock.ErrInvalid)
		if text := fmt.Sprint(err); !strings.Contains(text, `Prefix ""`) || !strings.Contains(text, `"x:"`) {
			r.Errorf("another prefix: %v, want both named", err)
		}
		_, err = a.Resume(r.Context(), handle, redlock.WithTTL(time.Hour))
		r.wantIs(err, redlock.ErrInvalid)
		if after := r.contents("k"); after != before {
			r.Errorf("keys %s, want %s as before", after, before)
		}
		l, err := a.Resume(r.Context(), handle)
		r.wantIs(err)
		r.wantIs(l.Unlock(r.Context()))
		_, err = a.Resume(r.Context(), handle)
		r.wantIs(err, redlock.ErrLost)
		a.Close()
		_, err = a.Resume(r.Context(), handle)
		r.wantIs(err, redlock.ErrClosed)
	})
}

// TestResumeWithoutAQuorumCanBeRepeated: whatever was swapped meanwhile is swapped back.
func TestResumeWithoutAQuorumCanBeRepeated(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig, b *user) (end func()){
		"nodes cut off": func(_ *rig, b *user) func() {
			b.cut(true, 0, 1, 2)
			return func() { b.cut(false, 0, 1, 2) }
		},
		"replies lost": func(r *rig, _ *user) func() {
			for _, n := range r.nodes[:3] {
				n.Faults().LoseReplies(fakenode.Next(1))
			}
			return func() {}
		},
		"nodes down": func(r *rig, _ *user) func() {
			for _, n := range r.nodes[:3] {
				n.Faults().Down(true)
			}
			return func() {
				for _, n := range r.nodes[:3] {
					n.Faults().Down(false)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 5, func(r *rig) {
				a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
				r.warm(b)
				la := r.take(a, "k")
				handle := r.detach(la)
				end := trouble(r, b)
				_, err := b.Resume(r.Context(), handle)
				r.wantIs(err, redlock.ErrNoQuorum)
				end()
				time.Sleep(2 * time.Second) // nodes that failed are asked again
				l, err := b.Resume(r.Context(), handle)
				r.wantIs(err)
				if l.Token() != la.Token() {
					r.Errorf("token %d, want %d", l.Token(), la.Token())
				}
				time.Sleep(time.Minute)
				r.wantHeld(l)
				r.wantKeys("k", 5)
			})
		})
	}
}

func TestResumeWithANodeDown(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		handle := r.detach(r.take(a, "k"))
		r.nodes[1].Faults().Down(true)
		l, err := b.Resume(r.Context(), handle)
		r.wantIs(err)
		time.Sleep(time.Second)
		r.nodes[1].Faults().Down(false) // with the key of who detached, until that ends
		time.Sleep(time.Minute)
		r.wantHeld(l)
		r.wantKeys("k", 3)
		r.wantIs(l.Unlock(r.Context()))
		synctest.Wait()
		r.wantKeys("k", 0)
	})
}

// TestNothingOfTheDetachedLockStays: on a node that did not hear of the hand-over its key is freed,
// too.
func TestNothingOfTheDetachedLockStays(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(r *rig) {
		a, b := r.user(redlock.Config{}), r.user(redlock.Config{})
		handle := r.detach(r.take(a, "k"))
		r.nodes[1].Faults().Down(true)
		l, err := b.Resume(r.Context(), handle)
		r.wantIs(err)
		r.wantIs(l.Unlock(r.Context()))
		time.Sleep(time.Second)
		r.wantKeys("k", 1)
		r.nodes[1].Faults().Down(false)
		time.Sleep(2 * time.Second)
		r.wantKeys("k", 0)
	})
}

// TestResumeTellsTheNodesItsMaxTTL: who resumes may have a larger one than all before, and a node
// that forgets the lock must keep still for that long (P6).
func TestResumeTellsTheNodesItsMaxTTL(t *testing.T) {
	t.Parallel()
	inBubble(t, 5, func(r *rig) {
		x, y := r.user(redlock.Config{}), r.user(redlock.Config{TTL: time.Minute})
		handle := r.detach(r.take(x, "k"))
		l, err := y.Resume(r.Context(), handle)
		r.wantIs(err)
		synctest.Wait()
		for _, n := range r.nodes[:3] {
			n.Forget()
		}
		for range 18 { // the next renewal is after 20 s
			time.Sleep(time.Second)
			if err := r.try(x, "k"); err == nil && l.Remaining() > 0 {
				r.Fatalf("a rival has it, and who resumed has it for another %v", l.Remaining())
			}
		}
	})
}

// TestResumeByClientsInAnotherOrder: a handle names nodes by their addresses, however a program
// lists them.
func TestResumeByClientsInAnotherOrder(t *testing.T) {
	t.Parallel()
	addrs := embedded.ForTest(t, 3).Addrs()
	open := func(cfg redlock.Config, order ...int) *redlock.Client {
		cfg.DisableRestartGuard = true
		for _, i := range order {
			client := redis.NewClient(&redis.Options{Addr: addrs[i]})
			t.Cleanup(func() { client.Close() })
			cfg.Clients = append(cfg.Clients, client)
		}
		c, err := redlock.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	a, b := open(redlock.Config{}, 0, 1, 2), open(redlock.Config{}, 2, 0, 1)
	l, err := a.TryLock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*redlock.Client{b, open(redlock.Config{Addrs: addrs}), a} {
		handle, err := l.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if l, err = c.Resume(t.Context(), handle); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
