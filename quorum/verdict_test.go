package quorum_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/quorum"
)

// letters make votes readable: see testdata/verdict.txt.
func letters(text string) []quorum.Vote {
	votes := make([]quorum.Vote, 0, len(text))
	for _, letter := range text {
		switch letter {
		case '.':
			votes = append(votes, quorum.Vote{})
		case '+':
			votes = append(votes, quorum.Vote{Kind: quorum.Granted})
		case 'x':
			votes = append(votes, quorum.Vote{Kind: quorum.Failed})
		default:
			votes = append(votes, quorum.Vote{Kind: quorum.Refused, Holder: token(letter)})
		}
	}
	return votes
}

// token is an owner token of a contender; of two the one with the earlier letter goes first.
func token(letter rune) string { return fmt.Sprintf("ql1:host:1/%c", letter) }

// us is our own token.
var us = token('m')

// show is the inverse of letters.
func show(votes []quorum.Vote) string {
	var text strings.Builder
	for _, v := range votes {
		switch v.Kind {
		case quorum.Pending:
			text.WriteByte('.')
		case quorum.Granted:
			text.WriteByte('+')
		case quorum.Failed:
			text.WriteByte('x')
		case quorum.Refused:
			text.WriteString(v.Holder[strings.LastIndexByte(v.Holder, '/')+1:])
		}
	}
	return text.String()
}

var standings = map[quorum.Standing]string{
	quorum.Unclear: "unclear", quorum.Leads: "leads", quorum.Trails: "trails",
}

func TestVerdictScript(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/verdict.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for i, line := range strings.Split(string(script), "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.ReplaceAll(line, "no quorum", "no_quorum")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 3 {
			t.Fatalf("line %d: %q: want votes, verdict, standing", i+1, line)
		}
		cases++
		votes, want := letters(fields[0]), strings.ReplaceAll(fields[1], "_", " ")
		verdict := quorum.Decide(votes)
		if verdict.String() != want {
			t.Errorf("line %d: Decide(%s) = %v, want %v", i+1, fields[0], verdict, want)
		}
		standing := "-"
		if verdict == quorum.Split {
			standing = standings[quorum.Stand(votes, us)]
		}
		if standing != fields[2] {
			t.Errorf("line %d: Stand(%s) = %s, want %s", i+1, fields[0], standing, fields[2])
		}
	}
	if cases < 50 {
		t.Errorf("the script has %d cases, want all of them", cases)
	}
}

// drawVotes makes votes of up to seven nodes and a few rivals.
func drawVotes(t *rapid.T, kinds string) []quorum.Vote {
	text := rapid.StringOfN(rapid.RuneFrom([]rune(kinds)), 1, 7, -1).Draw(t, "votes")
	return letters(text)
}

// with is votes with the i-th replaced.
func with(votes []quorum.Vote, i int, v quorum.Vote) []quorum.Vote {
	votes = slices.Clone(votes)
	votes[i] = v
	return votes
}

// later are the answers that a pending node can still give.
func later() []quorum.Vote { return letters("+xabnz") }

func TestVerdictIsFinal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		votes := drawVotes(t, "...++xabnz")
		verdict := quorum.Decide(votes)
		if verdict == quorum.Undecided {
			if !slices.Contains(votes, quorum.Vote{}) {
				t.Fatalf("Decide(%s) is undecided, and no answer is out", show(votes))
			}
			return
		}
		for i := range votes {
			if votes[i].Kind != quorum.Pending {
				continue
			}
			for _, v := range later() {
				after := with(votes, i, v)
				if got := quorum.Decide(after); got != verdict {
					t.Fatalf("Decide(%s) = %v, but then Decide(%s) = %v",
						show(votes), verdict, show(after), got)
				}
			}
		}
	})
}

func TestHeldNeedsOneTokenOnAMajority(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		votes := drawVotes(t, ".+xabcnz")
		most := 0
		count := make(map[string]int)
		for _, v := range votes {
			if v.Kind == quorum.Refused {
				count[v.Holder]++
				most = max(most, count[v.Holder])
			}
		}
		held := quorum.Decide(votes) == quorum.Held
		if want := most >= quorum.Majority(len(votes)); held != want {
			t.Fatalf("Decide(%s): held is %v, with %d refusals by one token", show(votes), held, most)
		}
	})
}

func TestWonNeedsAMajorityOfTheConfiguredNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		votes := drawVotes(t, ".++xaz")
		granted := 0
		for _, v := range votes {
			if v.Kind == quorum.Granted {
				granted++
			}
		}
		won := quorum.Decide(votes) == quorum.Won
		if want := 2*granted > len(votes); won != want {
			t.Fatalf("Decide(%s): won is %v, with %d of %d", show(votes), won, granted, len(votes))
		}
	})
}

func TestOrderOfNodesDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		votes := drawVotes(t, ".+xabnz")
		other := slices.Clone(votes)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if a, b := quorum.Decide(votes), quorum.Decide(other); a != b {
			t.Fatalf("Decide(%s) = %v, Decide(%s) = %v", show(votes), a, show(other), b)
		}
		if a, b := quorum.Stand(votes, us), quorum.Stand(other, us); a != b {
			t.Fatalf("Stand(%s) = %s, Stand(%s) = %s",
				show(votes), standings[a], show(other), standings[b])
		}
	})
}

// views are what contenders see of nodes that all answered: each its own nodes as granted.
func views(holders []rune) map[rune][]quorum.Vote {
	seen := make(map[rune][]quorum.Vote)
	for _, me := range holders {
		if me == 'x' || seen[me] != nil {
			continue
		}
		votes := letters(string(holders))
		for i, h := range holders {
			if h == me {
				votes[i] = quorum.Vote{Kind: quorum.Granted}
			}
		}
		seen[me] = votes
	}
	return seen
}

// TestExactlyOneLeads is what makes contention end: of contenders that see the same votes one and
// only one stays (protocol review, V1).
func TestExactlyOneLeads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		holders := []rune(rapid.StringOfN(
			rapid.RuneFrom([]rune("abcdeghx")), 1, 7, -1).Draw(t, "holders"))
		seen := views(holders)
		var leaders []string
		for me, votes := range seen {
			switch quorum.Stand(votes, token(me)) {
			case quorum.Leads:
				leaders = append(leaders, string(me))
			case quorum.Unclear:
				t.Fatalf("%s: %c does not know where it stands, and all have answered",
					string(holders), me)
			}
		}
		if len(seen) > 0 && len(leaders) != 1 {
			t.Fatalf("%s: %q lead, want one", string(holders), leaders)
		}
	})
}

// completions calls f with all that pending votes can become.
func completions(votes []quorum.Vote, f func([]quorum.Vote)) {
	i := slices.Index(votes, quorum.Vote{})
	if i < 0 {
		f(votes)
		return
	}
	for _, v := range later() {
		completions(with(votes, i, v), f)
	}
}

// TestStandingIsFinal: whoever stays or yields before all have answered does what it would do
// after any further answer.
func TestStandingIsFinal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		votes := drawVotes(t, ".+++xabnz")
		now := quorum.Stand(votes, us)
		if now == quorum.Unclear {
			return
		}
		completions(votes, func(after []quorum.Vote) {
			if got := quorum.Stand(after, us); got != now {
				t.Fatalf("Stand(%s) = %s, but then Stand(%s) = %s",
					show(votes), standings[now], show(after), standings[got])
			}
		})
	})
}

// naive decides by trying everything that can still happen.
func naive(votes []quorum.Vote) quorum.Verdict {
	first, same := quorum.Undecided, true
	completions(votes, func(all []quorum.Vote) {
		verdict := naiveEnd(all)
		same = same && (first == quorum.Undecided || first == verdict)
		first = verdict
	})
	if !same {
		return quorum.Undecided
	}
	return first
}

// naiveEnd is the verdict when all have answered, as one would say it.
func naiveEnd(votes []quorum.Vote) quorum.Verdict {
	count := make(map[quorum.Vote]int)
	for _, v := range votes {
		count[v]++
	}
	for v, n := range count {
		if 2*n <= len(votes) {
			continue
		}
		switch v.Kind {
		case quorum.Granted:
			return quorum.Won
		case quorum.Refused:
			return quorum.Held
		}
	}
	voters := len(votes) - count[quorum.Vote{Kind: quorum.Failed}]
	if 2*voters <= len(votes) {
		return quorum.NoQuorum
	}
	return quorum.Split
}

func FuzzDecide(f *testing.F) {
	for _, seed := range []string{"...", "++.", "+ax", "ab.", "xx.", "+nxx.", "+abc.", "aabb.", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) == 0 || len(text) > 6 {
			return
		}
		var clean strings.Builder
		for i := range len(text) {
			clean.WriteByte(".+xabnz"[text[i]%7])
		}
		for _, text := range []string{text, clean.String()} {
			if strings.Trim(text, ".+xabnz") != "" {
				continue
			}
			votes := letters(text)
			if got, want := quorum.Decide(votes), naive(votes); got != want {
				t.Errorf("Decide(%s) = %v, trying everything gives %v", text, got, want)
			}
		}
	})
}

func TestDecideHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		tally quorum.Tally
		want  quorum.HoldVerdict
	}{
		{"a majority still has our key", quorum.Tally{Ours: 3, Pending: 2}, quorum.HoldKept},
		{"two of five are not enough", quorum.Tally{Ours: 2, Failed: 3}, quorum.HoldUnknown},
		{"nobody's on a majority", quorum.Tally{Nobody: 3, Ours: 2}, quorum.HoldGone},
		{"a rival's on a majority", quorum.Tally{Rival: 3, Ours: 2}, quorum.HoldGone},
		{"nobody's and rivals' add up: ours it is not", quorum.Tally{Nobody: 2, Rival: 1},
			quorum.HoldGone},
		{"too few answers either way", quorum.Tally{Ours: 2, Nobody: 2, Failed: 1},
			quorum.HoldUnknown},
		{"nothing yet", quorum.Tally{Pending: 5}, quorum.HoldUnknown},
	} {
		if got := quorum.DecideHold(c.tally, 3); got != c.want {
			t.Errorf("%s: DecideHold(%+v) = %v, want %v", c.name, c.tally, got, c.want)
		}
	}
}

// TestAnyTwoMajoritiesMeet is what the whole algorithm rests on.
func TestAnyTwoMajoritiesMeet(t *testing.T) {
	t.Parallel()
	for n := 1; n <= quorum.MaxNodes; n++ {
		m := quorum.Majority(n)
		if 2*m <= n {
			t.Errorf("Majority(%d) = %d: two of them need not meet", n, m)
		}
		if 2*(m-1) > n {
			t.Errorf("Majority(%d) = %d: one less would do", n, m)
		}
	}
}
