package fakenode

import (
	"fmt"
	"math"
	"strconv"
)

// acquire is acquire.lua: takes the lock on this node, if the node may vote and nobody holds it.
func acquire(r *run) string {
	head, from, letter := guard(r)
	if letter != "" {
		return letter + head
	}
	if !r.setNX(r.key(1), r.arg(1), r.arg(2)) {
		return found(r, head)
	}
	// A new grant: the register grows, to the proposal if that is larger, within what this
	// node's clock allows and not below what a lost register can have held.
	proposed := r.number(r.arg(3))
	token := min(proposed, float64(r.now)+r.number(r.arg(4)))
	token = max(token, float64(r.now)-r.number(r.arg(5)), from)
	if register, ok := r.hget(r.key(2), "token"); ok {
		token = max(token, r.number(register)+1)
	}
	r.hset(r.key(2), "token", wireNumber(token))
	r.pexpire(r.key(2), r.arg(6))
	if token == proposed {
		return "+" + head
	}
	return "+" + head + " " + wireNumber(token)
}

// guard says whether this memory may vote: a letter if not. From is the moment that registers which
// are not there count as.
func guard(r *run) (head string, from float64, letter string) {
	from = float64(r.silence.until)
	head = " " + r.time()
	if s := r.silence; r.now < s.until {
		most := strconv.FormatFloat(math.Ceil(float64(s.until-s.began)/1000), 'f', 0, 64)
		return fmt.Sprintf("%s %d %d %s", head, s.began, s.until, most), from, "~"
	}
	if r.arg(7) == "" {
		return head + " 0 0 0", from, ""
	}
	node := r.hmget(r.key(3), "id", "since", "from", "max")
	if node == nil || node[0] != r.arg(7) {
		return head + " 0 0 0", from, "!"
	}
	since, voteFrom, most := node[1], node[2], node[3]
	if r.number(most) < r.number(r.arg(8)) {
		most = r.arg(8)
		r.hset(r.key(3), "max", most)
	}
	head = fmt.Sprintf("%s %s %s %s", head, since, voteFrom, most)
	from = max(from, r.number(voteFrom))
	if float64(r.now) < r.number(voteFrom) || float64(r.now) < r.number(since) {
		return head, from, "~"
	}
	return head, from, ""
}

// found answers about a key that was there.
func found(r *run, head string) string {
	holder, _ := r.get(r.key(1))
	left := r.pttl(r.key(1))
	if holder != r.arg(1) {
		return fmt.Sprintf("-%s %d %s", head, left, holder)
	}
	if float64(left) < r.number(r.arg(2)) {
		r.pexpire(r.key(1), r.arg(2))
	}
	register, ok := r.hget(r.key(2), "token")
	if !ok {
		register = "0"
	}
	if register == r.arg(3) {
		return "=" + head
	}
	return "=" + head + " " + register
}
