package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/integration/internal/monotonic"
	"github.com/quorumlock/quorumlock/redlock"
)

// What a process of a history does: some clients lock, hold, look, extend, and release at random,
// and write each down, at once, so that a killed one loses nothing that it believed.

// A task is what a process is told, by a variable that makes the test binary that process.
type task struct {
	Addrs   []string
	Names   []string
	Clients []int // their numbers in the history
	Seed    uint64
	TTL     time.Duration
}

const taskVariable = "QUORUMLOCK_HISTORY_TASK"

// TestBeliever is the process, if the variable is set. It ends when its standard input does, so
// that it outlives nobody.
func TestBeliever(t *testing.T) {
	text := os.Getenv(taskVariable)
	if text == "" {
		return // it is for processes of TestHistories alone
	}
	var work task
	if err := json.Unmarshal([]byte(text), &work); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	b := bufio.NewWriter(os.Stdout)
	var writing sync.Mutex
	write := func(e entry) {
		line, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		writing.Lock()
		defer writing.Unlock()
		fmt.Fprintf(b, "entry %s\n", line)
		b.Flush()
	}
	var believers sync.WaitGroup
	for _, number := range work.Clients {
		client, err := redlock.New(redlock.Config{Addrs: work.Addrs, TTL: work.TTL,
			Identity: fmt.Sprint("client ", number), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		b := &believer{client: client, number: number, names: work.Names, write: write, ttl: work.TTL,
			random: rand.New(rand.NewPCG(work.Seed, uint64(number)))}
		believers.Go(func() {
			for ctx.Err() == nil {
				b.turn(ctx)
			}
			client.Close()
		})
	}
	believers.Wait()
}

// A believer is one client, and what it believes.
type believer struct {
	client *redlock.Client
	number int
	names  []string
	ttl    time.Duration
	random *rand.Rand
	write  func(entry)
}

// turn tries for a lock, and if it has it holds it for a while.
func (b *believer) turn(ctx context.Context) {
	name := b.names[b.random.IntN(len(b.names))]
	var opts []redlock.LockOption
	if b.random.IntN(3) == 0 {
		opts = append(opts, redlock.WithoutRenewal())
	}
	e := entry{Client: b.number, Name: name, Call: monotonic.Now()}
	l, err := b.try(ctx, name, opts)
	e.Return = monotonic.Now()
	if err != nil {
		e.Kind, e.Contended = failed, errors.Is(err, redlock.ErrHeld)
		b.write(e)
		if e.Contended {
			b.idle(ctx, b.ttl/20)
		} else { // no quorum: at once it would only be the same, thousands of times
			b.idle(ctx, b.ttl)
		}
		return
	}
	e.Kind, e.Token = gained, l.Token()
	b.write(e)
	b.hold(ctx, l, e)
}

func (b *believer) try(
	ctx context.Context, name string, opts []redlock.LockOption,
) (*redlock.Lock, error) {
	if b.random.IntN(2) == 0 {
		return b.client.TryLock(ctx, name, opts...)
	}
	ctx, cancel := context.WithTimeout(ctx, b.ttl/2)
	defer cancel()
	return b.client.Lock(ctx, name, opts...)
}

// hold looks, and extends, and in the end releases: mostly soon, now and then after more than the
// TTL.
func (b *believer) hold(ctx context.Context, l *redlock.Lock, last entry) {
	looks := b.random.IntN(6)
	if b.random.IntN(10) == 0 {
		looks = 40
	}
	for ; ; looks-- {
		e := entry{Client: b.number, Kind: seen, Name: last.Name, Token: last.Token, Call: monotonic.Now()}
		isHeld := l.Remaining() > 0
		if isHeld && b.random.IntN(6) == 0 && l.Extend(ctx) != nil {
			isHeld = l.Remaining() > 0
		}
		e.Return = monotonic.Now()
		if isHeld && looks > 0 {
			b.write(e)
			last = e
			b.idle(ctx, b.ttl/15)
			continue
		}
		if isHeld {
			b.write(e)
			last = e
			_ = l.Unlock(ctx)
		}
		e.Kind, e.Call, e.Return = ended, last.Return, monotonic.Now()
		b.write(e)
		_ = l.Unlock(ctx)
		return
	}
}

// idle is work under the lock, or between tries.
func (b *believer) idle(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(time.Duration(b.random.Int64N(int64(most)))):
	case <-ctx.Done():
	}
}

// readEntries reads what a process writes, until it ends.
func readEntries(out io.Reader, got func(entry)) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "entry ")
		if !ok {
			continue // the test binary's own words
		}
		var e entry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			continue // cut short by a kill: it was not written down
		}
		got(e)
	}
	return lines.Err()
}
