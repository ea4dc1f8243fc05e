package schedule

import "time"

// gocron does not tell a locker which instant a run is for. What it shows is the job's list of
// next instants: those that were armed and, going on by calculation, those after them. Its first
// element is the wanted one in most cases but not in all: entries stay behind when a run was
// skipped, when the wall clock disagrees with timers, or after a stop. The newest one that is due
// is right in all of them.

// earlySlack is how far before its instant a timer may fire.
const earlySlack = 30 * time.Millisecond

// mostInstants bounds how many instants are read: a process that slept for longer than that many
// is too late for all of them.
const mostInstants = 1 << 14

// never is what stands in gocron's lists for "no more": it cannot end a schedule by itself.
var never = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// A finding is what a list of instants says at a moment.
type finding struct {
	due  time.Time // the newest that is due; zero: none
	next time.Time // the first after that; zero: none

	all []time.Time // what was read
}

// empty reports whether there was no instant at all.
func (f finding) empty() bool { return len(f.all) == 0 }

// findInstant reads as much of a list of next instants as is necessary. nextRuns is the method
// NextRuns of a gocron.Job.
func findInstant(nextRuns func(int) ([]time.Time, error), now time.Time) (finding, error) {
	for n := 4; ; n *= 4 {
		times, err := nextRuns(n)
		if err != nil {
			return finding{}, err
		}
		f := lookAt(times, now)
		if !f.next.IsZero() || len(f.all) < n || n >= mostInstants {
			return f, nil
		}
	}
}

// lookAt is findInstant for a list that was read. The list of a job that ends runs on into the
// zero time and starts over: what follows the first zero says nothing.
func lookAt(times []time.Time, now time.Time) finding {
	var f finding
	for i, t := range times {
		if t.IsZero() || !t.Before(never) {
			break
		}
		f.all = times[:i+1]
		switch {
		case !t.After(now.Add(earlySlack)):
			if t.After(f.due) {
				f.due = t
			}
		case f.next.IsZero() || t.Before(f.next):
			f.next = t
		}
	}
	return f
}
