package script

import (
	"strconv"
	"strings"
	"time"
)

// A Mark is what is on record of a tick.
type Mark struct {
	Fencing uint64
	State   string // "run", "skip"
	Owner   string // owner token of the claim
}

// A Record is what a claim read, beside the reply of its acquire.
type Record struct {
	Low  int64 // marks up to this instant, ms, were dropped
	Mark Mark  // of the tick; Owner is empty if there is none
}

// ParseClaim takes the reply of claim.lua apart. With Letter Early only Time is set.
func ParseClaim(text string) (Reply, Record, error) {
	end := strings.LastIndexByte(text, '\n') // a holder of another library may have some, too
	if end < 0 {
		return Reply{}, Record{}, badReply(text)
	}
	first, second := text[:end], text[end+1:]
	var reply Reply
	var err error
	if strings.HasPrefix(first, string(rune(Early))) {
		reply, _, err = parseHead(first, "e", true)
	} else {
		reply, err = ParseAcquire(first)
	}
	if err != nil {
		return Reply{}, Record{}, badReply(text)
	}
	low, rest, err := cutNumber(" " + second)
	if err != nil {
		return Reply{}, Record{}, badReply(text)
	}
	record := Record{Low: low}
	if rest == "" {
		return reply, record, nil
	}
	fields := strings.SplitN(rest[1:], " ", 3)
	if rest[0] != ' ' || len(fields) != 3 || fields[2] == "" {
		return Reply{}, Record{}, badReply(text)
	}
	fencing, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return Reply{}, Record{}, badReply(text)
	}
	record.Mark = Mark{Fencing: fencing, State: fields[1], Owner: fields[2]}
	return reply, record, nil
}

// ParseCommit takes the reply of commit.lua apart.
func ParseCommit(text string) (Reply, error) {
	if text == string(rune(Marked)) {
		return Reply{Letter: Marked}, nil
	}
	return parseShort(text, false)
}

// ParseConfirm takes the reply of confirm.lua apart. With Letter Marked, Left is what is missing.
func ParseConfirm(text string) (Reply, error) {
	if !strings.HasPrefix(text, string(rune(Marked))) {
		return parseShort(text, true)
	}
	reply, rest, err := parseHead(text, "m", true)
	if err != nil {
		return Reply{}, err
	}
	missing, rest, err := cutNumber(rest)
	if err != nil || rest != "" {
		return Reply{}, badReply(text)
	}
	reply.Left = span(missing, time.Millisecond)
	return reply, nil
}
