package redsyncpool_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlock/redsyncpool"
)

// The programs of docs/migrating-from-redsync.md, which has them letter by letter from here.

// report is the work that the lock protects.
func report(context.Context) error { return nil }

func before(ctx context.Context, clients []*goredislib.Client) error {
	var pools []redis.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	rs := redsync.New(pools...)

	mutex := rs.NewMutex("report", redsync.WithExpiry(8*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.Unlock()
	return report(ctx) // to be done within 8 s, or somebody calls mutex.Extend
}

func between(ctx context.Context, clients []*goredislib.Client) error {
	locks, err := redlock.New(redlock.Config{Clients: clients})
	if err != nil {
		return err
	}
	defer locks.Close()
	pools, err := redsyncpool.New(clients...)
	if err != nil {
		return err
	}
	rs := redsync.New(pools...)

	// Moved already.
	err = locks.Do(ctx, "report", func(ctx context.Context, lock *redlock.Lock) error {
		return report(ctx)
	})
	if err != nil {
		return err
	}

	// Not yet.
	mutex := rs.NewMutex("clean up", redsync.WithExpiry(8*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.Unlock()
	return report(ctx)
}

func after(ctx context.Context, clients []*goredislib.Client) error {
	locks, err := redlock.New(redlock.Config{Clients: clients})
	if err != nil {
		return err
	}
	defer locks.Close()

	return locks.Do(ctx, "report", func(ctx context.Context, lock *redlock.Lock) error {
		return report(ctx) // ctx ends if the lock is lost; it is renewed for as long as it takes
	})
}

func TestTheProgramsRun(t *testing.T) {
	t.Parallel()
	clients := clientsOf(t, embedded.ForTest(t, 3).Addrs())
	admitting, err := redlock.New(redlock.Config{Clients: clients})
	if err != nil {
		t.Fatal(err)
	}
	defer admitting.Close()
	admit(t, admitting)
	for name, program := range map[string]func(context.Context, []*goredislib.Client) error{
		"before": before, "between": between, "after": after,
	} {
		if err := program(t.Context(), clients); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheDocumentationHasThesePrograms(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/migrating-from-redsync.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("programs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"before", "between", "after"} {
		body := regexp.MustCompile(fmt.Sprintf(`(?ms)^func %s\(.*?^}\n`, name)).FindString(string(source))
		if body == "" {
			t.Fatalf("no function %s", name)
		}
		if !strings.Contains(string(text), "```go\n"+body+"```") {
			t.Errorf("the documentation has another %q, want:\n%s", name, body)
		}
	}
}
