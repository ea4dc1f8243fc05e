package fakenode

import "fmt"

// extend is extend.lua: prolongs the lock, if the key is still the caller's.
func extend(r *run) string {
	head := " " + r.time()
	holder, ok := r.get(r.key(1))
	if !ok {
		return "0" + head
	}
	left := r.pttl(r.key(1))
	if holder != r.arg(1) {
		return fmt.Sprintf("-%s %d %s", head, left, holder)
	}
	if float64(left) < r.number(r.arg(2)) {
		r.pexpire(r.key(1), r.arg(2))
	}
	if r.arg(3) != "0" {
		r.pexpire(r.key(2), r.arg(3))
	}
	return "+" + head
}

// raise is raise.lua: lifts the register, where the key is the caller's.
func raise(r *run) string {
	if letter := notOurs(r); letter != "" {
		return letter
	}
	register, ok := r.hget(r.key(2), "token")
	if !ok || r.number(register) < r.number(r.arg(2)) {
		r.hset(r.key(2), "token", r.arg(2))
	}
	if float64(r.pttl(r.key(2))) < r.number(r.arg(3)) {
		r.pexpire(r.key(2), r.arg(3))
	}
	return "+"
}

// release is release.lua: frees the lock, if the key is the caller's, or leaves it for as long as
// it has to stay, and tells those who wait.
func release(r *run) string {
	if letter := notOurs(r); letter != "" {
		return letter
	}
	left := float64(r.pttl(r.key(1)))
	if r.arg(3) == "0" {
		r.del(r.key(1))
	} else if left > r.number(r.arg(3)) || left < 0 {
		r.pexpire(r.key(1), r.arg(3))
	}
	r.publish(r.arg(2), r.arg(1))
	return "+"
}

// swap is swap.lua: hands the lock over to another owner token.
func swap(r *run) string {
	head := " " + r.time()
	holder, ok := r.get(r.key(1))
	if !ok {
		return "0" + head
	}
	left := r.pttl(r.key(1))
	if holder != r.arg(1) && holder != r.arg(2) {
		return fmt.Sprintf("-%s %d %s", head, left, holder)
	}
	if node, all := r.hmget(r.key(3), "since", "from", "max", "floor"); all {
		r.larger(r.key(3), node[0], node[1], node[2], node[3], r.arg(5))
	}
	r.set(r.key(1), r.arg(2), wireNumber(max(float64(left), r.number(r.arg(3)))))
	r.pexpire(r.key(2), r.arg(4))
	return "+" + head
}

// inspect is inspect.lua: what this node knows of a name.
func inspect(r *run) string {
	head := " " + r.time()
	register, ok := r.hget(r.key(2), "token")
	if !ok {
		register = "0"
	}
	holder, ok := r.get(r.key(1))
	if !ok {
		return "0" + head + " " + register
	}
	return fmt.Sprintf("-%s %s %d %s", head, register, r.pttl(r.key(1)), holder)
}

// notOurs is the answer of scripts that do not read the clock to a key that is not the caller's.
func notOurs(r *run) string {
	holder, ok := r.get(r.key(1))
	switch {
	case !ok:
		return "0"
	case holder != r.arg(1):
		return fmt.Sprintf("- %d %s", r.pttl(r.key(1)), holder)
	}
	return ""
}
