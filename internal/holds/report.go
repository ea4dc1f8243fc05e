package main

import (
	"fmt"
	"io"
	"time"
)

// strayGoroutines is how many more goroutines there may be at rest with all locks than with a
// hundredth of them: connections that a burst opened, not something that grows.
const strayGoroutines = 100

// report prints what was measured and says whether it is as promised.
func (m *measurement) report(out io.Writer) bool {
	g, n := m.ledger, m.settings.locks
	least := g.leastRenewals()
	line := func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-42s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("goroutines at rest", "%d without locks, %d with %d, %d with %d", m.before.goroutines,
		m.few.goroutines, max(n/100, 1), m.many.goroutines, n)
	line("goroutines at once, over the renewals", "at most %d", m.most)
	line("heap per held lock, its name included", "%d bytes", (m.many.heap-m.before.heap)/int64(n))
	line("renewals", "%d, each lock at least %d times in %v", g.extends.Load(), least,
		m.watched.Round(time.Second))
	line("locks lost", "%d; held at the end %d of %d", g.lost.Load(), m.held, n)
	line("renewals repeated for want of a quorum", "%d", g.failed.Load())
	g.mu.Lock()
	line("longest delay of a renewal", "begun %v after its time, there %v after it",
		g.late.Round(time.Millisecond), g.done.Round(time.Millisecond))
	line("least validity left at a renewal", "%v of %v", g.left.Round(time.Millisecond),
		g.valid.Round(time.Millisecond))
	g.mu.Unlock()
	if m.cpu > 0 {
		line("CPU time of this process over it", "%.1f s, %.1f us per renewal", m.cpu.Seconds(),
			float64(m.cpu.Microseconds())/float64(max(g.extends.Load(), 1)))
	}
	line("Close, freeing all of them", "%v, error: %v", m.closing.Round(time.Millisecond), m.closeErr)

	grown := m.many.goroutines > m.few.goroutines+strayGoroutines
	return !grown && g.lost.Load() == 0 && m.held == n && least >= m.settings.renewals
}
