package fakenode

// larger is larger.lua: what a MaxTTL that is larger than all before changes at the node.
func (r *run) larger(
	hash, since, from, most, floor, asked string,
) (newFrom, newMost, newFloor string) {
	more := r.number(asked) - r.number(most)
	if more <= 0 {
		return from, most, floor
	}
	least := r.number(since) + r.number(asked)*1000
	if from != "0" {
		least = r.number(from) + more*1000
		from = wireNumber(least)
	}
	if least > r.number(floor) {
		floor = wireNumber(least)
	}
	r.hset(hash, "from", from, "max", asked, "floor", floor)
	return from, asked, floor
}
