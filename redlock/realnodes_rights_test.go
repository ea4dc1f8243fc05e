package redlock_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// documentedRule is the ACL rule in docs/operating.md, the least rights that redlock needs.
func documentedRule(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    user locks .*\n(?:     +.*\n)*`).FindString(string(text))
	if found == "" {
		t.Fatal("docs/operating.md has no rule that begins with \"user locks\"")
	}
	return strings.Join(strings.Fields(found), " ")
}

// asUser are the rig's addresses for the rule's user.
func (r *realRig) asUser() (addrs []string) {
	for _, s := range r.servers {
		addrs = append(addrs, "redis://locks:secret@"+s.Addr())
	}
	return addrs
}

// useAll uses all that a client can do.
func (r *realRig) useAll(a, b *redlock.Client) {
	r.Helper()
	ctx := r.Context()
	l := r.take(a, "k", redlock.WithMinHold(time.Millisecond))
	r.must(l.Extend(ctx))
	status, err := b.Inspect(ctx, "k")
	if err != nil || status.Votes < status.Quorum || status.Token < l.Token() {
		r.Errorf("Inspect: %+v, %v; want votes of a majority and at least token %d", status, err, l.Token())
	}
	handle, err := l.Detach()
	r.must(err)
	l, err = a.Resume(ctx, handle)
	r.must(err)
	r.meets(b, "k")
	var waiting sync.WaitGroup
	began := time.Now()
	waiting.Go(func() {
		next, err := b.Lock(ctx, "k")
		if err != nil {
			r.Error(err)
			return
		}
		if err := next.Unlock(ctx); err != nil {
			r.Error(err)
		}
	})
	waitUntil(r.T, "the other listens, or was refused to", func() bool {
		for i := range r.servers {
			subscribed := fmt.Sprint(r.do([]int{i}, "PUBSUB", "NUMSUB", "ql:free:k")) == "[ql:free:k 1]"
			if !subscribed && !strings.Contains(fmt.Sprint(r.do([]int{i}, "ACL", "LOG")), "subscribe") {
				return false
			}
		}
		return true
	})
	r.free(l)
	waiting.Wait()
	r.Logf("waited for %v", time.Since(began).Round(time.Millisecond))
	for _, c := range []*redlock.Client{a, b} {
		for _, n := range c.Nodes(ctx) {
			if !n.Reachable || n.Err != nil {
				r.Errorf("node %s: %v", n.Node, n.Err)
			}
		}
	}
}

// denied is what the servers refused, as ACL LOG has it.
func (r *realRig) denied() (all []string) {
	r.Helper()
	for i := range r.servers {
		entries, _ := r.do([]int{i}, "ACL", "LOG").([]any)
		for _, entry := range entries {
			all = append(all, fmt.Sprint(entry))
		}
	}
	return all
}

// The rights that the documentation asks for are enough, and none of them could be left out: those
// that no lock needs, ticks do.
func TestRealRights(t *testing.T) {
	t.Parallel()
	rule := documentedRule(t)
	r := onRealNodes(t, 3, redisproc.WithACL(rule))
	a := r.admitted(redlock.Config{Addrs: r.asUser(), TTL: time.Minute})
	b := r.open(redlock.Config{Addrs: r.asUser(), TTL: time.Minute})
	r.useAll(a, b)
	for _, n := range a.Nodes(t.Context()) {
		if n.GuardOff || len(n.Warnings) > 0 || n.Version == "" {
			t.Errorf("node %s: guard off: %v, version %q, warnings %q", n.Node, n.GuardOff, n.Version,
				n.Warnings)
		}
	}
	if denied := r.denied(); len(denied) > 0 {
		t.Errorf("refused by the servers: %q", denied)
	}
	info, _ := r.do([]int{0}, "INFO", "commandstats").(string)
	var unused []string
	for _, word := range strings.Fields(rule) {
		if command, ok := strings.CutPrefix(word, "+"); ok &&
			!strings.Contains(info, "cmdstat_"+command+":") {
			unused = append(unused, command)
		}
	}
	t.Logf("allowed and not used here: %v", unused)
	expected := []string{
		"client|setname", "hello", "select", // clients of one's own, and /db in an address
		"hdel", "hlen", "hkeys", "exists", // ticks, and nodes without INFO
		"ping",        // only where a node has failed
		"unsubscribe", // only while another name is still waited for
	}
	for _, command := range unused {
		if !slices.Contains(expected, command) {
			t.Errorf("%s is allowed by the rule and nothing uses it", command)
		}
	}
}

// A client of one's own has options of its own, and says hello with them.
func TestRealRightsOfOnesOwnClient(t *testing.T) {
	t.Parallel()
	r := onRealNodes(t, 3, redisproc.WithACL(documentedRule(t)))
	own := func() (clients []*redis.Client) {
		for _, s := range r.servers {
			c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "locks", Password: "secret",
				ClientName: "billing", DB: 1})
			t.Cleanup(func() { c.Close() })
			clients = append(clients, c)
		}
		return clients
	}
	a := r.admitted(redlock.Config{Clients: own(), TTL: time.Minute})
	b := r.open(redlock.Config{Clients: own(), TTL: time.Minute})
	r.useAll(a, b)
	for _, entry := range r.denied() {
		// go-redis tries these and goes on; the second on servers that are like Redis 7.2 or later.
		if !strings.Contains(entry, "client|maint_notifications") &&
			!strings.Contains(entry, "client|setinfo") {
			t.Errorf("refused by the server: %s", entry)
		}
	}
}

// Without +info there is no guard, and Nodes says so; without +publish and +subscribe waiters poll.
func TestRealRightsWithoutInfo(t *testing.T) {
	t.Parallel()
	rule := strings.NewReplacer(" +info", "", " +publish", "", " +subscribe", "").
		Replace(documentedRule(t))
	r := onRealNodes(t, 3, redisproc.WithACL(rule))
	a := r.open(redlock.Config{Addrs: r.asUser(), TTL: time.Minute})
	b := r.open(redlock.Config{Addrs: r.asUser(), TTL: time.Minute})
	r.useAll(a, b)
	for _, n := range a.Nodes(t.Context()) {
		if !n.GuardOff {
			t.Errorf("node %s: the guard is said to be on", n.Node)
		}
		if len(n.Warnings) == 0 {
			t.Errorf("node %s: no warning", n.Node)
		}
	}
}
