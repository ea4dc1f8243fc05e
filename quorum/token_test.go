package quorum_test

import (
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/quorum"
)

func TestTokensAreNeverTheSame(t *testing.T) {
	t.Parallel()
	const makers, each = 4, 2_500
	made := make(chan string, makers*each)
	var wg sync.WaitGroup
	for range makers {
		wg.Go(func() {
			for range each {
				made <- quorum.NewToken("host:1")
			}
		})
	}
	wg.Wait()
	close(made)
	seen := make(map[string]bool)
	for token := range made {
		if seen[token] {
			t.Fatalf("token %q came twice", token)
		}
		seen[token] = true
		if !strings.HasPrefix(token, "ql1:host:1/") || len(token) != len("ql1:host:1/")+22 {
			t.Fatalf("token %q, want ql1:<identity>/ and 128 bits in 22 letters", token)
		}
	}
}

func TestIdentityOfToken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		identity := rapid.String().Draw(t, "identity")
		if got := quorum.Identity(quorum.NewToken(identity)); got != identity {
			t.Fatalf("the token of %q names %q", identity, got)
		}
	})
	for _, foreign := range []string{"", "ql1:", "ql1:x", "2TaKcUxUJs6bG4lLwhh5DQ==", "other/one"} {
		if got := quorum.Identity(foreign); got != foreign {
			t.Errorf("Identity(%q) = %q, want another library's token as it is", foreign, got)
		}
	}
}

// TestIdentityDoesNotWinTies: by the whole token one replica's name would win every tie.
func TestIdentityDoesNotWinTies(t *testing.T) {
	t.Parallel()
	votes := letters("+a")
	votes[1].Holder = "ql1:zz/a"
	if got := quorum.Stand(votes, "ql1:aa/m"); got != quorum.Trails {
		t.Errorf("against a smaller random part: %s, want trails", standings[got])
	}
	votes[1].Holder = "ql1:aa/z"
	if got := quorum.Stand(votes, "ql1:zz/m"); got != quorum.Leads {
		t.Errorf("against a larger random part: %s, want leads", standings[got])
	}
}

func TestRankOfToken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		identity, rank := rapid.String().Draw(t, "identity"), rapid.IntRange(0, 1<<20).Draw(t, "rank")
		token := quorum.NewRankedToken(identity, rank)
		if got := quorum.Rank(token); got != rank {
			t.Fatalf("%q has rank %d, want %d", token, got, rank)
		}
		if got := quorum.Identity(token); got != identity {
			t.Fatalf("%q names %q, want %q", token, got, identity)
		}
		if got := quorum.Rank(quorum.NewToken(identity)); got != quorum.Unranked {
			t.Fatalf("a token without a rank has rank %d", got)
		}
	})
	for _, foreign := range []string{"", ".", ".3", "ql1:", "ql1:x.3/a", "ql1:x/a.", "ql1:x/a.-1",
		"ql1:x/a.b", "ql1:x/a.99999999999999999999", "other/one.3", "2TaKcUxUJs6bG4lLwhh5DQ==.3"} {
		if got := quorum.Rank(foreign); got != quorum.Unranked {
			t.Errorf("Rank(%q) = %d, want none", foreign, got)
		}
	}
}
