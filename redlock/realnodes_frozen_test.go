//go:build unix

package redlock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// frozenAddrs names the variable that makes TestFrozenHolder the process which is frozen.
const frozenAddrs = "QUORUMLOCK_TEST_FROZEN_ADDRS"

// A look is what the frozen process saw of its lock.
type look struct {
	Token     uint64
	Remaining time.Duration
	Err       string // of its context
	Lost      bool   // its cause matches ErrLost
	Derived   bool   // a context made of it is done, too
	Extend    bool   // Extend: ErrLost
	Unlock    bool   // Unlock: ErrNotHeld
	After     time.Duration
}

// samcook/RedLock.net 48: a holder's process stood still for longer than its TTL, another took and
// perhaps freed the lock, and the old holder went on. Here it is stopped (SIGSTOP); when it goes
// on, its first look tells the loss, and nothing of it reaches the rival's keys.
func TestRealFrozenHolder(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 3)
	rival := r.admitted(redlock.Config{TTL: realTTL})
	cmd := exec.Command(os.Args[0], "-test.run=^TestFrozenHolder$", "-test.v")
	cmd.Env = append(os.Environ(), frozenAddrs+"="+strings.Join(r.servers.Addrs(), ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	r.must(err, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	next := func() (l look) {
		t.Helper()
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "look "); ok {
				r.must(json.Unmarshal([]byte(text), &l))
				return l
			}
			t.Log("the holder:", lines.Text())
		}
		t.Fatal("the holder has ended")
		return l
	}

	before := next()
	if before.Remaining <= 0 || before.Err != "" {
		t.Fatalf("before it is frozen: %+v", before)
	}
	r.must(cmd.Process.Signal(syscall.SIGSTOP))
	frozen := time.Now()
	l := r.takeWithin(4*realTTL, rival, "k")
	// Where the holder's keys were still alive, the rival's come with an extend.
	waitUntil(t, "the rival has all nodes", func() bool {
		r.must(l.Extend(r.Context()))
		return len(slices.Compact(r.keys("k"))) == 1
	})
	keys := r.keys("k")
	time.Sleep(time.Until(frozen.Add(realTTL + realTTL/3)))
	r.must(cmd.Process.Signal(syscall.SIGCONT))

	first := next()
	t.Logf("frozen for %v; its first look: %+v", first.After.Round(time.Millisecond), first)
	if first.Remaining > 0 || first.Err == "" || !first.Lost || !first.Derived {
		t.Errorf("the first look does not tell the loss: %+v", first)
	}
	if !first.Extend || !first.Unlock {
		t.Errorf("Extend gives ErrLost: %v, Unlock ErrNotHeld: %v; want both", first.Extend, first.Unlock)
	}
	if l.Token() <= before.Token {
		t.Errorf("the rival's token %d, the frozen holder's %d", l.Token(), before.Token)
	}
	r.held(l)
	time.Sleep(realTTL / 3) // for whatever the process still sends
	r.held(l)
	if after := r.keys("k"); !slices.Equal(after, keys) {
		t.Errorf("the rival's keys were %q, now %q", keys, after)
	}
	r.free(l)
	r.gone("k")
}

// TestFrozenHolder is no test of its own, but the process that TestRealFrozenHolder freezes.
func TestFrozenHolder(t *testing.T) {
	addrs := os.Getenv(frozenAddrs)
	if addrs == "" {
		return // it is for the process of TestRealFrozenHolder alone
	}
	c, err := redlock.New(redlock.Config{Addrs: strings.Split(addrs, ","), TTL: realTTL})
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.TryLock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := l.Context()
	derived, cancel := context.WithCancel(ctx)
	defer cancel()
	say := func(l look) {
		text, _ := json.Marshal(l)
		fmt.Printf("\nlook %s\n", text)
	}
	last := time.Now() // before anybody hears of this process, and may freeze it
	say(look{Token: l.Token(), Remaining: l.Remaining()})
	for {
		time.Sleep(time.Millisecond)
		now := time.Now()
		after := now.Sub(last)
		last = now // no instant in between, in which a frost would not be seen
		seen := look{Token: l.Token(), Remaining: l.Remaining(), After: after}
		if after < realTTL {
			continue
		}
		if err := ctx.Err(); err != nil {
			seen.Err = err.Error()
		}
		seen.Lost = errors.Is(context.Cause(ctx), redlock.ErrLost)
		seen.Derived = derived.Err() != nil
		seen.Extend = errors.Is(l.Extend(t.Context()), redlock.ErrLost)
		seen.Unlock = errors.Is(l.Unlock(t.Context()), redlock.ErrNotHeld)
		say(seen)
		time.Sleep(time.Minute) // it is ended from outside; until then it does what it still has to do
		return
	}
}
