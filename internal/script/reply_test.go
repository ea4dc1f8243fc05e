package script

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// parsers are the readers of replies.
var parsers = map[string]func(string) (Reply, error){
	"acquire": ParseAcquire, "extend": ParseExtend, "release": ParseRelease,
	"admit": ParseAdmit, "inspect": ParseInspect, "commit": ParseCommit, "confirm": ParseConfirm,
	"claim": func(text string) (Reply, error) {
		reply, record, err := ParseClaim(text)
		if err != nil && record != (Record{}) {
			return Reply{Letter: '?'}, err
		}
		return reply, err
	},
}

func TestRepliesAreReadWhole(t *testing.T) {
	t.Parallel()
	at := 1_764_403_200*time.Second + 123_457*time.Microsecond
	for _, c := range []struct {
		script, text string
		want         Reply
	}{
		{"acquire", "+ 1764403200 123457 0 0 0", Reply{Letter: Done, Time: at}},
		{"acquire", "+ 1764403200 123457 0 0 0 1764403200123457",
			Reply{Letter: Done, Time: at, Register: 1764403200123457}},
		{"acquire", "= 1764403200 123457 1 2 3 4", Reply{Letter: Ours, Time: at,
			Since: time.Microsecond, From: 2 * time.Microsecond, MaxTTL: 3 * time.Millisecond,
			Register: 4}},
		{"acquire", "- 1764403200 123457 0 0 0 250 ql1:a b/c",
			Reply{Letter: Rival, Time: at, Left: 250 * time.Millisecond, Holder: "ql1:a b/c"}},
		{"acquire", "- 1764403200 123457 0 0 0 -1 x",
			Reply{Letter: Rival, Time: at, Left: -time.Millisecond, Holder: "x"}},
		{"acquire", "~ 1764403200 123457 1 2 3", Reply{Letter: Waits, Time: at,
			Since: time.Microsecond, From: 2 * time.Microsecond, MaxTTL: 3 * time.Millisecond}},
		{"acquire", "! 1764403200 123457 0 0 0", Reply{Letter: Unknown, Time: at}},
		{"extend", "+ 1764403200 123457", Reply{Letter: Done, Time: at}},
		{"extend", "0 1764403200 123457", Reply{Letter: Nobody, Time: at}},
		{"extend", "- 1764403200 123457 9999999999999999 x",
			Reply{Letter: Rival, Time: at, Left: math.MaxInt64, Holder: "x"}},
		{"release", "+", Reply{Letter: Done}},
		{"release", "0", Reply{Letter: Nobody}},
		{"release", "- 7 ", Reply{Letter: Rival, Left: 7 * time.Millisecond}},
	} {
		got, err := parsers[c.script](c.text)
		if err != nil || got != c.want {
			t.Errorf("%s %q: %+v, %v, want %+v", c.script, c.text, got, err, c.want)
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string][]string{
		"acquire": {"", "+", "+ 1", "+ 1 2", "+ 1 2 0 0", "+ 1 2 0 0 0 ", "+ 1 2 0 0 0 x",
			"+ 1 2 0 0 0 1 2", "? 1 2 0 0 0", "0 1 2 0 0 0", "- 1 2 0 0 0", "- 1 2 0 0 0 5",
			"+ 1 1000000 0 0 0", "+ -1 2 0 0 0", "+ 99999999999 2 0 0 0", "+  1 2 0 0 0",
			"+ 1 2 0 0 0 12345678901234567", "~ 1 2 0 0 0 1", "+ 1 2 0 0 0\n"},
		"extend":  {"", "+", "+ 1", "= 1 2", "+ 1 2 3", "0 1 2 3", "- 1 2", "- 1 2 3", "- 1 2 - x"},
		"release": {"", "OK", "+ ", "1", "-", "- 5", "-5 x", "- x y"},
		"admit": {"", "x", "x2", "x00", "rr", "+", "+ 1 2 3 4 5", "+ 1 2 3 4 5 ", "+ 1 2 3 4 5x",
			"- 1 2 3 4 5 id", "+ 1 2 3 4 id", "= 99999999999 2 3 4 5 id"},
		"inspect": {"", "0", "0 1 2", "0 1 2 3 4", "- 1 2 3", "- 1 2 3 4", "+ 1 2 3", "0 1 2 x"},
		"claim": {"", "\n", "+ 1 2 0 0 0", "+ 1 2 0 0 0\n", "+ 1 2 0 0 0\nx", "+ 1 2 0 0 0\n5 1 run",
			"+ 1 2 0 0 0\n5 1 run ", "+ 1 2 0 0 0\n5 x run o", "+ 1 2 0 0 0\n5 -1 run o",
			"+ 1 2 0 0 0\n5x1 run o", "\n5"},
		"commit":  {"", "mm", "m ", "+ ", "- 1"},
		"confirm": {"", "m", "m 1 2", "m 1 2 3 4", "m 1 2 x", "+", "- 1 2 3"},
	} {
		for _, text := range texts {
			if got, err := parsers[name](text); err == nil {
				t.Errorf("%s %q is read as %+v, want a refusal", name, text, got)
			}
		}
	}
}

func TestRefusalShowsTheBeginningOnly(t *testing.T) {
	t.Parallel()
	_, err := ParseAcquire(strings.Repeat("z", 1<<20))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("the error of a reply of 1 MiB has %d bytes, want few", len(fmt.Sprint(err)))
	}
}

// write is what acquire.lua would have answered; the inverse of ParseAcquire.
func write(r Reply) string {
	text := fmt.Sprintf("%c %d %d %d %d %d", r.Letter, r.Time/time.Second,
		r.Time%time.Second/time.Microsecond, r.Since.Microseconds(), r.From.Microseconds(),
		r.MaxTTL.Milliseconds())
	switch {
	case r.Letter == Rival:
		text += fmt.Sprintf(" %d %s", r.Left.Milliseconds(), r.Holder)
	case r.Register > 0:
		text += fmt.Sprintf(" %d", r.Register)
	}
	return text
}

func FuzzParse(f *testing.F) {
	f.Add("+ 1764403200 123457 0 0 0")
	f.Add("= 1764403200 123457 1 2 3 1764403200123457")
	f.Add("- 1764403200 123457 0 0 0 -1 ql1:host/x")
	f.Add("- 1 2 3 x")
	f.Add("0")
	f.Add("+ 1 2 0 0 0\n5 1 run ql1:a/b")
	f.Add("= 1 2 3 4 5 0123abcd")
	f.Add("m 1 2 3")
	f.Add("x1")
	f.Fuzz(func(t *testing.T, text string) {
		for name, parse := range parsers {
			reply, err := parse(text)
			if err != nil {
				if reply != (Reply{}) {
					t.Errorf("%s %q: refused, and still %+v", name, text, reply)
				}
				continue
			}
			if reply.Time < 0 || reply.Since < 0 || reply.From < 0 || reply.MaxTTL < 0 {
				t.Errorf("%s %q: a time below zero: %+v", name, text, reply)
			}
		}
		reply, err := ParseAcquire(text)
		if err != nil || reply.MaxTTL == math.MaxInt64 || reply.Left == math.MaxInt64 {
			return // what does not fit a time.Duration is cut off
		}
		again, err := ParseAcquire(write(reply))
		if err != nil || again != reply {
			t.Errorf("%q is read as %+v, written as %q, and read again as %+v, %v",
				text, reply, write(reply), again, err)
		}
	})
}
