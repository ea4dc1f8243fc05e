package quorum

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
)

// tokenMark begins every owner token of ours, so that those of other libraries on the same keys
// can be told apart.
const tokenMark = "ql1:"

// rankMark stands before the rank in an owner token.
const rankMark = '.'

// NewRankedToken is NewToken for an attempt of a waiter with a rank: that of how many others were to
// ask before it, or Unranked. Whoever hears of its release knows by that how many are not before it
// any more.
func NewRankedToken(identity string, rank int) string {
	if rank == Unranked {
		return NewToken(identity)
	}
	return NewToken(identity) + string(rankMark) + strconv.Itoa(rank)
}

// Unranked stands for the rank of an owner token that has none.
const Unranked = -1

// Rank is that of an owner token, or Unranked.
func Rank(token string) int {
	random := randomPart(token)
	at := strings.LastIndexByte(random, rankMark)
	if at < 0 || !strings.HasPrefix(token, tokenMark) {
		return Unranked
	}
	rank, err := strconv.Atoi(random[at+1:])
	if err != nil || rank < 0 {
		return Unranked
	}
	return rank
}

// NewToken makes an owner token: `ql1:<identity>/<random>`, with 128 random bits. Every attempt
// takes a fresh one; with a token that outlives its attempt, a late release of the first attempt
// can take away a vote that the second has counted (protocol review, P2). Nothing is kept for the next
// one: copies of a process, as of a restored memory image, would give out the same.
func NewToken(identity string) string {
	var random [16]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], random[:])
	var token strings.Builder
	token.Grow(len(tokenMark) + len(identity) + 1 + len(text))
	token.WriteString(tokenMark)
	token.WriteString(identity)
	token.WriteByte('/')
	token.Write(text[:])
	return token.String()
}

// Identity is whom an owner token names; for a token of another library, the token itself.
func Identity(token string) string {
	rest, ours := strings.CutPrefix(token, tokenMark)
	slash := strings.LastIndexByte(rest, '/')
	if !ours || slash < 0 {
		return token
	}
	return rest[:slash]
}

// goesFirst reports whether token a goes before b where both have equally many nodes. Only the
// random parts are compared: by the whole token one replica's name would win every tie.
func goesFirst(a, b string) bool {
	ra, rb := randomPart(a), randomPart(b)
	if ra != rb {
		return ra < rb
	}
	return a < b
}

func randomPart(token string) string {
	return token[strings.LastIndexByte(token, '/')+1:]
}
