package schedule

import (
	"math"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// Instants that gocron would take from the moment a replica started, or run into a loop without an
// end for, are given to it as calendars of our own: as what it calls a cron implementation.

// A calendar says which instants follow.
type calendar interface {
	after(last time.Time) time.Time // never, if there are no more
}

// A grid is all multiples of an interval since the epoch, not before from.
type grid struct {
	interval time.Duration
	from     time.Time // zero: all
}

// latest is the last instant that has a number of nanoseconds since the epoch, in 2262: from there
// on there are no multiples.
var latest = time.Unix(0, math.MaxInt64)

func (g grid) after(last time.Time) time.Time {
	if !g.from.Before(latest) {
		return never
	}
	if next := gridFloor(last, g.interval).Add(g.interval); !next.Before(g.from) {
		return next
	}
	first := gridFloor(g.from, g.interval)
	if first.Before(g.from) {
		first = first.Add(g.interval)
	}
	return first
}

// instants are some, in order.
type instants []time.Time

func (s instants) after(last time.Time) time.Time {
	i, found := slices.BinarySearchFunc(s, last, time.Time.Compare)
	if found {
		i++
	}
	if i == len(s) {
		return never
	}
	return s[i]
}

// A cronFrom is a cron's instants, not before from.
type cronFrom struct {
	cron gocron.Cron
	from time.Time
}

func (c cronFrom) after(last time.Time) time.Time {
	if last.Before(c.from) {
		last = c.from.Add(-1).In(last.Location()) // which decides what the crontab means
	}
	next := c.cron.Next(last)
	if next.IsZero() {
		return never
	}
	return next
}

// A cron is a calendar as gocron wants it, in the scheduler's location.
type cron struct {
	calendar calendar
	location *time.Location
}

// IsValid is for gocron.Cron: what is wrong with a schedule was found before.
func (cron) IsValid(string, *time.Location, time.Time) error { return nil }

// Next is for gocron.Cron. Of two instants one after the other with the same wall-clock text
// gocron takes the second for a repetition of the first, and passes it over; here they are two, and
// the second has a zone of its own, from which the one after it comes back.
func (c cron) Next(last time.Time) time.Time {
	next := c.calendar.after(last.In(c.location)).In(c.location)
	if _, ours := c.calendar.(cronFrom); !ours && sameText(last, next) {
		_, offset := next.Zone()
		next = next.In(time.FixedZone("", offset+1))
	}
	return next
}

func sameText(a, b time.Time) bool {
	return a.Format(time.DateTime) == b.Format(time.DateTime)
}
