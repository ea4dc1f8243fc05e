package integration

import (
	"crypto/tls"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

// The ways in which nodes are set up: how many, what they write down, whom they let in.

// scenario is what has to work on each of them.
func (r *rig) scenario(a, b *redlock.Client) {
	r.Helper()
	r.useAll(a, b)
	s := r.contest(a, "k")
	minority := (len(r.Nodes) - 1) / 2
	each(r, minority, r.Nodes, (*Node).Kill)
	if s.rival(r, b, ttl) {
		r.Error("the rival has it")
	}
	r.held(s.first)
	each(r, minority, r.Nodes, (*Node).Start)
	r.held(s.first)
	r.free(s.first)
	next := r.takeWithin(2*ttl, b, "k")
	if next.Token() <= s.first.Token() {
		r.Errorf("token %d after %d", next.Token(), s.first.Token())
	}
	r.free(next)
	r.gone(2*ttl, "k")
}

func TestNodesByNumberAndPersistence(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 3, 5} {
		for what, option := range map[string]Option{
			"none": WithConfig(), "AOF always": disk,
			"AOF everysec": WithConfig("appendonly yes", "appendfsync everysec"),
			"RDB":          WithConfig("save 1 1"),
		} {
			t.Run(fmt.Sprintf("nodes=%d/persistence=%s", count, what), func(t *testing.T) {
				t.Parallel()
				r := on(t, count, option)
				r.scenario(r.admitted(redlock.Config{}), r.open(redlock.Config{}))
			})
		}
	}
}

func TestNodesWithAPassword(t *testing.T) {
	t.Parallel()
	r := on(t, 3, WithPassword("secret"))
	cfg := redlock.Config{Addrs: r.URLs("redis", ":secret")}
	r.scenario(r.admitted(cfg), r.open(cfg))
}

// The rights that docs/operating.md asks for are enough.
func TestNodesForAUserWithTheLeastRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^    user locks .*\n(?:     +.*\n)*`).FindString(string(text))
	if rule == "" {
		t.Fatal("docs/operating.md has no rule that begins with \"user locks\"")
	}
	r := on(t, 3, WithUser(strings.Join(strings.Fields(rule), " ")))
	cfg := redlock.Config{Addrs: r.URLs("redis", "locks:secret")}
	r.scenario(r.admitted(cfg), r.open(cfg))
	for i, n := range r.Nodes {
		entries, err := n.Do(t.Context(), "ACL", "LOG")
		r.must(err)
		if list, _ := entries.([]any); len(list) > 0 {
			t.Errorf("refused by node %d: %v", i, list)
		}
	}
	r.refused(r.open(redlock.Config{}), "k", redlock.ErrNoQuorum) // the default user is off
}

func TestNodesThatSpeakTLS(t *testing.T) {
	t.Parallel()
	t.Run("rediss addresses", func(t *testing.T) {
		t.Parallel()
		r := on(t, 3, WithTLS(authority), WithPassword("secret"))
		cfg := redlock.Config{Addrs: r.URLs("rediss", ":secret")}
		r.scenario(r.admitted(cfg), r.open(cfg))
	})
	t.Run("clients of one's own", func(t *testing.T) {
		t.Parallel()
		own, err := NewAuthority() // no root of this system
		if err != nil {
			t.Fatal(err)
		}
		r := on(t, 3, WithTLS(own))
		clients := func(config *tls.Config) (clients []*redis.Client) {
			for _, addr := range r.Addrs() {
				c := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config})
				t.Cleanup(func() { c.Close() })
				clients = append(clients, c)
			}
			return clients
		}
		a := r.admitted(redlock.Config{Clients: clients(own.ClientConfig())})
		r.scenario(a, r.open(redlock.Config{Clients: clients(own.ClientConfig())}))
		l := r.take(a, "held")
		// Strangers are told that they cannot tell, not that it is taken.
		stranger := r.open(redlock.Config{Addrs: r.URLs("rediss", "")})
		r.says(stranger, "held", 2, "certificate")
		plain := r.open(redlock.Config{NodeTimeout: 500 * time.Millisecond})
		r.refused(plain, "held", redlock.ErrNoQuorum)
		r.free(l)
	})
}
