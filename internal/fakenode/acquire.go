package fakenode

import (
	"fmt"
	"math"
)

// acquire is acquire.lua: takes the lock on this node, if the node may vote and nobody holds it.
func acquire(r *run) string {
	head, floor, letter := guard(r)
	if letter != "" {
		return letter + head
	}
	letter = "+"
	if !r.setNX(r.key(1), r.arg(1), r.arg(3)) {
		if text := found(r, head); text != "" {
			return text
		}
		letter = "="
	}
	// The register grows, to the proposal if that is larger, within what this node's clock allows
	// and not below what a lost register can have held.
	proposed := r.number(r.arg(2))
	token := min(proposed, float64(r.now)+r.number(r.arg(4)))
	token = max(token, floor)
	register, ok := r.hget(r.key(2), "token")
	if ok {
		token = max(token, r.number(register)+1)
	}
	r.hset(r.key(2), "token", wireNumber(token))
	if !ok || leading(register) != leading(wireNumber(token)) {
		r.pexpire(r.key(2), r.arg(6))
	}
	if token == proposed {
		return letter + head
	}
	return letter + head + " " + wireNumber(token)
}

// leading are a token's digits but the last ten.
func leading(token string) string { return token[:max(0, len(token)-10)] }

// guard says whether this memory may vote: a letter if not. Registers that are not there count as
// the floor.
func guard(r *run) (head string, floor float64, letter string) {
	head = " " + r.time()
	s := r.node.silence
	floor = max(float64(r.now)-r.number(r.arg(5)), float64(s.until))
	if r.now < s.until {
		most := math.Ceil(float64(s.until-s.began) / 1000)
		return fmt.Sprintf("%s %d %d %.0f", head, s.began, s.until, most), floor, "~"
	}
	if r.arg(7) == "" {
		return head + " 0 0 0", floor, ""
	}
	node, known := r.hmget(r.key(3), "id", "since", "from", "max", "floor")
	if !known || node[0] != r.arg(7) {
		return head + " 0 0 0", floor, "!"
	}
	since, from, most := node[1], node[2], node[3]
	from, most, node[4] = r.larger(r.key(3), since, from, most, node[4], r.arg(8))
	head = fmt.Sprintf("%s %s %s %s", head, since, from, most)
	if from != "0" {
		more := max(r.number(r.arg(9))-r.number(most), 0)
		least := max(r.number(from), r.number(since)+r.number(most)*1000)
		if float64(r.now) < least+more*1000 {
			return head, floor, "~"
		}
	}
	return head, max(floor, r.number(node[4])), ""
}

// found answers about a key that was there; not if it is ours and lost its register.
func found(r *run, head string) string {
	holder, _ := r.get(r.key(1))
	left := r.pttl(r.key(1))
	if holder != r.arg(1) {
		return fmt.Sprintf("-%s %d %s", head, left, holder)
	}
	if float64(left) < r.number(r.arg(3)) {
		r.pexpire(r.key(1), r.arg(3))
	}
	register, ok := r.hget(r.key(2), "token")
	switch {
	case !ok:
		return ""
	case register == r.arg(2):
		return "=" + head
	}
	return "=" + head + " " + register
}
