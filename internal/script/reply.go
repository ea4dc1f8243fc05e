package script

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The first letter of a reply.
const (
	Done    = '+' // granted, prolonged, raised, freed
	Ours    = '=' // the key was ours already
	Rival   = '-' // somebody else's key
	Nobody  = '0' // no key
	Waits   = '~' // the node's memory is too new to vote
	Unknown = '!' // the node's memory is not the one expected
	Replica = 'r' // admit: not a primary
	Exists  = 'x' // admit, asked to look
	Early   = 'e' // claim: the node's clock has not reached the instant
	Marked  = 'm' // commit, confirm: another's mark is in the way
)

// A Reply is what a script answered, taken apart.
type Reply struct {
	Letter   byte
	Time     time.Duration // the node's wall clock since the epoch; 0 where the script reads none
	Since    time.Duration // its memory began, since the epoch; 0 with the guard off
	From     time.Duration // it votes from, since the epoch; 0 with the guard off
	MaxTTL   time.Duration // the largest that any client wrote there; 0 with the guard off
	Register uint64        // acquire: the fencing register, 0 if it is the proposed token; Exists: 1 or 0
	Left     time.Duration // Rival: what its key has left; negative if it has no end
	Holder   string        // Rival: its owner token
	Identity string        // admit: of the node's memory
}

// ParseAcquire takes the reply of acquire.lua apart.
func ParseAcquire(text string) (Reply, error) {
	reply, rest, err := parseHead(text, "+=-~!", true)
	if err != nil {
		return Reply{}, err
	}
	if rest, err = parseNode(&reply, rest); err != nil {
		return Reply{}, badReply(text)
	}
	switch reply.Letter {
	case Rival:
		return parseRival(reply, rest, text)
	case Done, Ours:
		if rest == "" {
			return reply, nil
		}
		register, rest, err := cutNumber(rest)
		if err != nil || rest != "" {
			return Reply{}, badReply(text)
		}
		reply.Register = uint64(register)
		return reply, nil
	}
	if rest != "" {
		return Reply{}, badReply(text)
	}
	return reply, nil
}

// ParseAdmit takes the reply of admit.lua apart.
func ParseAdmit(text string) (Reply, error) {
	switch text {
	case "r":
		return Reply{Letter: Replica}, nil
	case "x0", "x1":
		return Reply{Letter: Exists, Register: uint64(text[1] - '0')}, nil
	}
	reply, rest, err := parseHead(text, "+=", true)
	if err != nil {
		return Reply{}, err
	}
	if rest, err = parseNode(&reply, rest); err != nil || len(rest) < 2 || rest[0] != ' ' {
		return Reply{}, badReply(text)
	}
	reply.Identity = rest[1:]
	return reply, nil
}

// parseNode reads what ql:node says.
func parseNode(reply *Reply, rest string) (string, error) {
	var fields [3]int64
	var err error
	for i := range fields {
		if fields[i], rest, err = cutNumber(rest); err != nil {
			return "", err
		}
	}
	reply.Since = span(fields[0], time.Microsecond)
	reply.From = span(fields[1], time.Microsecond)
	reply.MaxTTL = span(fields[2], time.Millisecond)
	return rest, nil
}

// ParseInspect takes the reply of inspect.lua apart.
func ParseInspect(text string) (Reply, error) {
	reply, rest, err := parseHead(text, "0-", true)
	if err != nil {
		return Reply{}, err
	}
	register, rest, err := cutNumber(rest)
	if err != nil {
		return Reply{}, badReply(text)
	}
	reply.Register = uint64(register)
	if reply.Letter == Rival {
		return parseRival(reply, rest, text)
	}
	if rest != "" {
		return Reply{}, badReply(text)
	}
	return reply, nil
}

// ParseExtend takes the reply of extend.lua apart; that of swap.lua has the same form.
func ParseExtend(text string) (Reply, error) { return parseShort(text, true) }

// NodeTime is the node's time in the reply of a timed script; 0 if there is none.
func NodeTime(text string) time.Duration {
	reply, _, err := parseHead(text, "+=-0~!e", true)
	if err != nil {
		return 0
	}
	return reply.Time
}

// ParseRelease takes the reply of release.lua apart; that of raise.lua has the same form.
func ParseRelease(text string) (Reply, error) { return parseShort(text, false) }

func parseShort(text string, timed bool) (Reply, error) {
	reply, rest, err := parseHead(text, "+0-", timed)
	if err != nil {
		return Reply{}, err
	}
	if reply.Letter == Rival {
		return parseRival(reply, rest, text)
	}
	if rest != "" {
		return Reply{}, badReply(text)
	}
	return reply, nil
}

// parseHead reads the letter and, if the script reads the clock, the node's time.
func parseHead(text, letters string, timed bool) (Reply, string, error) {
	if text == "" || strings.IndexByte(letters, text[0]) < 0 {
		return Reply{}, "", badReply(text)
	}
	reply, rest := Reply{Letter: text[0]}, text[1:]
	if !timed {
		return reply, rest, nil
	}
	sec, rest, err := cutNumber(rest)
	if err != nil || sec > maxSeconds {
		return Reply{}, "", badReply(text)
	}
	usec, rest, err := cutNumber(rest)
	if err != nil || usec >= 1e6 {
		return Reply{}, "", badReply(text)
	}
	reply.Time = time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond
	return reply, rest, nil
}

// maxSeconds keeps a node's time inside a time.Duration: the year 2262.
const maxSeconds = 9_223_372_035

func parseRival(reply Reply, rest, text string) (Reply, error) {
	negative := strings.HasPrefix(rest, " -")
	if negative {
		rest = " " + rest[2:]
	}
	left, rest, err := cutNumber(rest)
	if err != nil || len(rest) < 1 || rest[0] != ' ' {
		return Reply{}, badReply(text)
	}
	if negative {
		left = -left
	}
	reply.Left, reply.Holder = span(left, time.Millisecond), rest[1:]
	return reply, nil
}

// span is n units, or the longest time.Duration where that would not fit.
func span(n int64, unit time.Duration) time.Duration {
	if n > int64(math.MaxInt64/unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// cutNumber reads one field of digits, with the space before it. Sixteen digits is the most that
// Lua's numbers hold exactly; more is nonsense, and would overflow what it is multiplied by.
func cutNumber(text string) (int64, string, error) {
	if len(text) < 2 || text[0] != ' ' {
		return 0, "", badReply(text)
	}
	var n int64
	i := 1
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		if i > 16 {
			return 0, "", badReply(text)
		}
		n = n*10 + int64(text[i]-'0')
	}
	if i == 1 {
		return 0, "", badReply(text)
	}
	return n, text[i:], nil
}

// badReply is the error of a node that answers what no script of ours says. It shows the
// beginning only: a hostile node may send anything of any length.
func badReply(text string) error {
	const most = 64
	if len(text) > most {
		text = text[:most]
	}
	return fmt.Errorf("answered nonsense: %q", text)
}
