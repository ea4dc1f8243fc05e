package schedule

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/internal/fakenode"
)

// A claim that was won says nothing of a commit that nodes refused: what they said does.
func TestTextOfARefusedCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := []*fakenode.Node{fakenode.New("n1:1"), fakenode.New("n2:1"), fakenode.New("n3:1")}
		client := clientOn(t, nodes...)
		defer client.Close()
		_, _ = client.TryLock(t.Context(), "meets the nodes")
		time.Sleep(90 * second)
		access := door.Open(client)
		a := &claimer{access: access, job: "job", turns: newTurns(access.NodeTimeout), now: time.Now}
		for _, n := range nodes[1:] {
			n.Refuse("NOPERM not for you", "commit")
		}
		// The claim is won by the other two; and one attempt is made: a further one may find what this one
		// has left at the first node.
		nodes[0].Faults().DelayReplies(fakenode.Fixed(10 * time.Millisecond))
		err := a.attempt(t.Context(), tickAt(time.Now()), time.Now().Add(second)).err
		wantIs(t, err, undecided)
		text := fmt.Sprint(err)
		// As soon as one of two has refused it is certain; the other's answer may be there by then.
		want := regexp.MustCompile(`\(it could not be put on record\).*; nodes? n[23]:1(, n3:1)?: tick: .*NOPERM`)
		if !want.MatchString(text) {
			t.Errorf("got %q, want what was refused and by whom", text)
		}
		if strings.Contains(text, "votes") || strings.Contains(text, "too late") {
			t.Errorf("got %q, want nothing of votes, which were enough, nor of being late", text)
		}
	})
}

// Who claims a tick twice is told that it was itself, and for how long that counts is no time of a key.
func TestTextOfATickThatIsOnesOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fleet, a, _, _ *claimer) {
		d := tickAt(time.Now())
		a.gets(t, d)
		_, err := a.claim(t.Context(), d)
		wantIs(t, err, taken)
		if text := fmt.Sprint(err); !strings.HasSuffix(text, "held by a, this client's own identity") {
			t.Errorf("got %q, want it to end with whose tick it is", text)
		}
	})
}
