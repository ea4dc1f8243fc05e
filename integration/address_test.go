package integration

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Addresses that begin to lead to other servers, as names and virtual addresses do.

// redis/go-redis 790; envoyproxy/ratelimit 1191: what was behind an address was another server, and
// clients did not see it. Here it is as a restart: the new one gives no vote for MaxTTL.
func TestAnAddressThatLeadsToAnotherServer(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	strangers := ForTest(t, 4)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	s := r.contest(a, "k")
	r.must(r.Nodes[0].LeadTo(strangers.Nodes[0]))
	if s.rival(r, b, 2*ttl) {
		t.Error("one of five addresses leads elsewhere, and the rival has it")
	}
	r.held(s.first)
	began := time.Now()
	for i, n := range r.Nodes[1:4] {
		r.must(n.LeadTo(strangers.Nodes[i+1]))
	}
	r.says(b, "other", 3, "memory is new")
	if s.rival(r, b, 5*ttl) {
		if took := time.Since(began); took < ttl-100*time.Millisecond {
			t.Errorf("a vote of servers that were met %v ago, want MaxTTL, %v", took, ttl)
		}
		r.free(s.second)
	} else { // the holder has come onto the new ones before it ended
		r.held(s.first)
		r.free(s.first)
	}
	for _, n := range r.Nodes[:4] {
		r.must(n.LeadTo(n))
	}
	r.free(r.takeWithin(4*ttl, b, "after"))
}

// The addresses of a majority lead to other servers, which vote by now, and then back: to memories
// that are whole, and know nothing of what was locked meanwhile.
func TestAddressesThatLeadBackMakeNoSecondHolder(t *testing.T) {
	t.Parallel()
	r := on(t, 5)
	strangers := ForTest(t, 3)
	a, b := r.admitted(redlock.Config{}), r.open(redlock.Config{})
	r.free(r.take(a, "before"))
	for i, n := range r.Nodes[:3] {
		r.must(n.LeadTo(strangers.Nodes[i]))
	}
	s := &struggle{first: r.takeWithin(5*ttl, a, "k")}
	r.free(r.takeWithin(5*ttl, b, "meanwhile"))
	for _, n := range r.Nodes[:3] {
		r.must(n.LeadTo(n))
	}
	if s.rival(r, b, 4*ttl) {
		r.free(s.second)
		return
	}
	r.held(s.first) // it has come onto the old ones before it ended
	r.free(s.first)
}

// Two addresses that come to lead to one server are one vote.
func TestAnAddressThatLeadsToAServerThatIsANodeAlready(t *testing.T) {
	t.Parallel()
	r := on(t, 3)
	c := r.admitted(redlock.Config{})
	r.free(r.take(c, "k"))
	r.must(r.Nodes[0].LeadTo(r.Nodes[1]))
	r.free(r.takeWithin(3*ttl, c, "k")) // of two servers, both
	r.must(r.Nodes[2].Kill())
	if round := r.refused(c, "k", redlock.ErrNoQuorum); round.Votes > 1 {
		t.Errorf("%d votes of one server", round.Votes)
	}
}
