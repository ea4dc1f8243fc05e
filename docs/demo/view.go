package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// A view shows the stage: on a terminal as a picture that is drawn anew, elsewhere as lines.
type view struct {
	stage    *stage
	out      *os.File
	terminal bool
	stop     chan struct{}
	stopped  chan struct{}
	drawn    int // lines of the picture
	told     int // lines of the log and records that were printed
	records  int
}

func newView(s *stage, out *os.File) *view {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &view{stage: s, out: out, terminal: terminal,
		stop: make(chan struct{}), stopped: make(chan struct{})}
}

// run shows the stage until end is called.
func (v *view) run() {
	defer close(v.stopped)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		v.show()
		select {
		case <-tick.C:
		case <-v.stop:
			v.show()
			return
		}
	}
}

func (v *view) end() {
	close(v.stop)
	<-v.stopped
}

func (v *view) show() {
	v.stage.mu.Lock()
	defer v.stage.mu.Unlock()
	if v.terminal {
		v.draw()
	} else {
		v.printNews()
	}
}

// printNews prints what has happened since the last time.
func (v *view) printNews() {
	for _, line := range v.stage.log[v.told:] {
		fmt.Fprintln(v.out, line)
	}
	v.told = len(v.stage.log)
	for _, e := range v.stage.records[v.records:] {
		if e.Kind == "won" {
			fmt.Fprintln(v.out, e.came.Format("15:04:05.0"), v.tickLine(e))
		}
	}
	v.records = len(v.stage.records)
}

// tickLine tells who won a tick, with how many votes and in what time. It has 69 columns.
func (v *view) tickLine(e entry) string {
	return fmt.Sprintf("  %-12s %s  %-9s %d/%d votes, claim %5.1f ms, late %5.1f ms",
		e.Job, clockTime(time.UnixMilli(e.At)), e.replica, e.Votes, len(v.stage.addrs),
		float64(e.Claim)/1000, float64(e.Late)/1000)
}

// most is how many lines a picture has: it has to fit a terminal of 24.
const most = 23

// draw draws the picture over the last one. Lines do not wrap: a picture has as many rows as lines.
func (v *view) draw() {
	lines := []string{bold("quorumlock demo") + "  " + v.progress(), v.nodeLine(), ""}
	for _, r := range v.stage.replicas {
		if len(v.stage.replicas) <= 7 || r.state != "killed" && r.state != "gone" {
			lines = append(lines, v.replicaLine(r))
		}
	}
	left := max(most-len(lines)-2, 2) // two headings
	log := v.stage.log
	told := min(left/2, 6, len(log))
	lines = append(lines, bold("ticks"))
	lines = append(lines, v.lastTicks(min(left-told, 10))...)
	lines = append(lines, bold("trouble"))
	lines = append(lines, log[len(log)-told:]...)
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	b.WriteString("\x1b[?7l")
	for _, line := range lines {
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	b.WriteString("\x1b[J\x1b[?7h")
	fmt.Fprint(v.out, b.String())
	v.drawn = len(lines)
}

// progress is a bar over the time that is counted.
func (v *view) progress() string {
	s := v.stage
	if s.from.IsZero() {
		return "replicas start ..."
	}
	const width = 30
	part := float64(time.Since(s.from)) / float64(s.until.Sub(s.from))
	done := int(min(max(part, 0), 1) * width)
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("=", done), strings.Repeat(" ", width-done),
		max(time.Until(s.until), 0).Round(time.Second))
}

func (v *view) nodeLine() string {
	var b strings.Builder
	b.WriteString("nodes    ")
	for i, up := range v.stage.up {
		if up {
			fmt.Fprintf(&b, " %s %d", green("●"), i+1)
		} else {
			fmt.Fprintf(&b, " %s %d", red("○"), i+1)
		}
	}
	return b.String()
}

func (v *view) replicaLine(r *replica) string {
	state := r.state
	switch state {
	case "runs":
		state = green(state)
	case "killed", "frozen":
		state = red(state)
	}
	busy := strings.Join(sortedKeys(r.running), ", ")
	if busy != "" && r.state == "runs" {
		busy = "  > " + busy
	} else {
		busy = ""
	}
	return fmt.Sprintf("%-9s pid %-7d %s%*s %3d runs%s%s", r.name, r.cmd.Process.Pid,
		state, 8-len(r.state), "", r.runs,
		skewWords(r.skew), busy)
}

// lastTicks are the newest of those that somebody won.
func (v *view) lastTicks(most int) (lines []string) {
	for i := len(v.stage.records) - 1; i >= 0 && len(lines) < most; i-- {
		if e := v.stage.records[i]; e.Kind == "won" {
			lines = append(lines, v.tickLine(e))
		}
	}
	return lines
}

func bold(s string) string  { return "\x1b[1m" + s + "\x1b[0m" }
func green(s string) string { return "\x1b[32m" + s + "\x1b[0m" }
func red(s string) string   { return "\x1b[31m" + s + "\x1b[0m" }
