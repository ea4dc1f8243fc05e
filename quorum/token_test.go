package quorum_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/quorum"
)

func TestTokensAreNeverTheSame(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 10_000 {
		token := quorum.NewToken("host:1")
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
