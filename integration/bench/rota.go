package main

import (
	"cmp"
	"slices"
	"time"
)

// A share is what one process has of a hand-off: so many of the clients, and so many of those who
// take the lock.
type share struct{ clients, takers int }

// deal shares clients over processes, and takers over the clients, each in turn. There is a client
// at least. Where there are fewer clients than processes, the last processes have none.
func deal(takers, clients, processes int) []share {
	all := make([]share, processes)
	for i := range clients {
		all[i%processes].clients++
	}
	for i := range takers {
		all[i%clients%processes].takers++
	}
	return all
}

// A turn is one hold of one taker. Its times are of monotonic.Now.
type turn struct {
	Process, Taker int
	Got            int64 // after Lock had returned
	Freed          int64 // before Unlock was called
}

// A rota says who may ask again: whoever has been followed by another holder.
type rota struct {
	last  turn // by the time of Got
	begun bool
}

// held notes that somebody holds the lock, and returns whose turn is over for good. Two processes
// tell of their holds in any order: the times say who was followed by whom.
func (r *rota) held(h turn) (followed turn, ok bool) {
	if !r.begun {
		r.last, r.begun = h, true
		return turn{}, false
	}
	if h.Got < r.last.Got {
		return h, true
	}
	followed, r.last = r.last, h
	return followed, true
}

// gapsOf puts the holds of all processes in order, and returns the gaps between them, each from
// one holder's call of Unlock to the next one's return from Lock, as far as they ended by then.
// together is how often the next one had the lock before that call: two held it at once.
func gapsOf(holds []turn, until int64) (gaps []time.Duration, together int) {
	sorted := slices.SortedFunc(slices.Values(holds),
		func(a, b turn) int { return cmp.Compare(a.Got, b.Got) })
	for i, next := range sorted {
		switch {
		case i == 0 || next.Got > until:
		case next.Got < sorted[i-1].Freed:
			together++
		default:
			gaps = append(gaps, time.Duration(next.Got-sorted[i-1].Freed))
		}
	}
	return gaps, together
}
