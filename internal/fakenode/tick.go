package fakenode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// claim is claim.lua: takes the claim lock of a job for one tick, and reads what is on record.
func claim(r *run) string {
	var reply string
	if float64(r.now)/1000 < r.number(r.arg(10)) {
		reply = "e " + r.time() + " 0 0 0"
	} else {
		reply = acquire(r)
	}
	low, ok := r.hget(r.key(2), "low")
	if !ok {
		low = "0"
	}
	reply += "\n" + low
	if mark, ok := r.hget(r.key(2), "t"+r.arg(10)); ok {
		reply += " " + mark
	}
	return reply
}

// commit is commit.lua: puts a tick on record, where the claim lock is the caller's.
func commit(r *run) string {
	if letter := notOurs(r); letter != "" {
		return letter
	}
	field := "t" + r.arg(2)
	if mark, ok := r.hget(r.key(2), field); ok {
		fencing, _, _ := strings.Cut(mark, " ")
		if r.number(fencing) > r.number(r.arg(3)) {
			return "m"
		}
	}
	r.hset(r.key(2), field, r.arg(3)+" "+r.arg(4)+" "+r.arg(1), "from", r.arg(7))
	r.pexpire(r.key(2), r.arg(6))
	dropMarks(r)
	return "+"
}

// Marks that are kept, however old or young, and from how many fields on it is looked after that.
const (
	marksLeast = 8
	marksMost  = 512
	manyFields = 20
)

// dropMarks keeps all marks that are younger than Grace, within these bounds.
func dropMarks(r *run) {
	names := r.hkeys(r.key(2))
	if len(names) <= manyFields {
		return
	}
	var at []int64
	for _, name := range names {
		if t, ok := strings.CutPrefix(name, "t"); ok {
			if ms, err := strconv.ParseInt(t, 10, 64); err == nil {
				at = append(at, ms)
			}
		}
	}
	slices.Sort(at)
	old := float64(r.now/1e6*1000) - r.number(r.arg(5))
	low := int64(-1)
	for i := 0; i < len(at)-marksLeast; i++ {
		if float64(at[i]) < old || len(at)-i > marksMost {
			low = at[i]
			r.hdel(r.key(2), fmt.Sprint("t", low))
		}
	}
	before, ok := r.hget(r.key(2), "low")
	if low >= 0 && (!ok || r.number(before) < float64(low)) {
		r.hset(r.key(2), "low", fmt.Sprint(low))
	}
}

// confirm is confirm.lua: says whether a lease is still the caller's, and moves its mark.
func confirm(r *run) string {
	head := " " + r.time()
	holder, ok := r.get(r.key(1))
	switch {
	case !ok:
		return "0" + head
	case holder != r.arg(1):
		return fmt.Sprintf("-%s %d %s", head, r.pttl(r.key(1)), holder)
	}
	reading := min(r.number(r.arg(2)), float64(r.nowMS()))
	mark, marked := r.hget(r.key(2), "mark")
	by, _ := r.hget(r.key(2), "by")
	if marked && by != r.arg(1) {
		if missing := r.number(mark) + r.number(r.arg(3)) - reading; missing >= 0 {
			return fmt.Sprintf("m%s %s", head, wireNumber(missing))
		}
	}
	if !marked || by != r.arg(1) || r.number(mark) < reading {
		r.hset(r.key(2), "mark", wireNumber(reading), "by", r.arg(1))
	}
	r.pexpire(r.key(2), r.arg(4))
	return "+" + head
}
