package main

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"time"
)

// The picture's measures, in pixels. Time goes on in a new band after so long.
const (
	left, right, top = 150, 20, 40
	row              = 24
	wide             = 1100
	band             = 4 * time.Minute
	tall             = (replicas+1+nodes)*row + 44 // of a band
)

const legendColumns, legendRow = 3, 18

// A drawing is the picture while it is made.
type drawing struct {
	bytes.Buffer
	from, until time.Time
	perSecond   float64
	kinds       []string // of fault, each with a letter
}

// picture draws the timeline as SVG: a row for each replica with a mark for each run, a row for
// ticks that nobody ran, a row for each node; and in all of them the faults.
func picture(from, until time.Time, records []record, faults []fault, v verdict) []byte {
	span := min(until.Sub(from), band)
	d := &drawing{from: from, until: until, perSecond: wide / span.Seconds()}
	for _, f := range faults {
		d.kinds = append(d.kinds, f.kind())
	}
	slices.Sort(d.kinds)
	d.kinds = slices.Compact(d.kinds)
	bands := int((until.Sub(from) + band - 1) / band)
	width := left + wide + right
	height := top + bands*tall + (len(d.kinds)+legendColumns-1)/legendColumns*legendRow + 20
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`, width, height)
	d.add(` viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	d.add(`<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	d.add(`<text x="10" y="22" font-size="14">%d ticks due, %d ran once, %d twice, `,
		v.due, v.once, v.twice)
	d.add("%d missed with a reason, %d wrong; %d faults</text>\n",
		len(v.missed), len(v.trouble), len(faults))
	for i := range bands {
		d.axes(i)
	}
	for _, f := range faults {
		d.fault(f)
	}
	for _, r := range records {
		at := time.UnixMilli(r.At)
		var i, start int
		if _, err := fmt.Sscanf(r.Replica, "web-%d.%d", &i, &start); err != nil || r.Kind != isRun {
			continue
		}
		d.dot(at, i-1, 2, "#1d5c87", fmt.Sprintf("%s ran %s", r.Replica, clockTime(at)))
	}
	for _, m := range v.missed {
		d.dot(m.at, replicas, 3, "#d62828", clockTime(m.at)+": "+m.detail)
	}
	d.legend(top + bands*tall + 20)
	d.add("</svg>\n")
	return d.Bytes()
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// place is where a moment is in this row.
func (d *drawing) place(at time.Time, line int) (x float64, y int) {
	i := int(at.Sub(d.from) / band)
	into := at.Sub(d.from) - time.Duration(i)*band
	return left + into.Seconds()*d.perSecond, top + i*tall + line*row
}

// axes draws the rows and the time of band i.
func (d *drawing) axes(i int) {
	begin := d.from.Add(time.Duration(i) * band)
	end := begin.Add(min(band, d.until.Sub(begin)))
	for line := range replicas + 1 + nodes {
		x, y := d.place(begin, line)
		text := fmt.Sprintf("node %d", line-replicas)
		switch {
		case line < replicas:
			text = fmt.Sprintf("web-%d", line+1)
			if ahead := standing[line]; ahead != 0 {
				text += fmt.Sprintf(", clock %+.0f s", ahead.Seconds())
			}
		case line == replicas:
			text = "nobody ran"
		}
		d.add(`<text x="10" y="%d">%s</text>`, y+row/2+4, text)
		d.add(`<line x1="%.0f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n", x, y+row/2,
			x+end.Sub(begin).Seconds()*d.perSecond, y+row/2)
	}
	for at := begin; at.Before(end); at = at.Add(10 * time.Second) {
		x, y := d.place(at, replicas+1+nodes)
		d.add(`<text x="%.1f" y="%d" font-size="10" fill="#777">%v</text>`+"\n",
			x, y+12, at.Sub(d.from))
	}
}

// colors of faults, by what they struck.
const nodeColor, replicaColor = "#e9c46a", "#9ccfb1"

// fault draws a fault in the rows of those that it struck.
func (d *drawing) fault(f fault) {
	lines, color := []int{f.replica}, replicaColor
	if f.replica < 0 {
		lines, color = nil, nodeColor
		for _, n := range f.nodes {
			lines = append(lines, replicas+1+n)
		}
	}
	for _, line := range lines {
		x, y := d.place(f.from, line)
		d.add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" opacity="0.7">`,
			x, y+2, max(2, f.to.Sub(f.from).Seconds()*d.perSecond), row-4, color)
		d.add("<title>%s</title></rect>\n", html.EscapeString(f.String()))
	}
	x, y := d.place(f.from, slices.Min(lines))
	d.add(`<text x="%.1f" y="%d" font-size="10" fill="#333">%s</text>`+"\n",
		x+1, y+3, d.letter(f.kind()))
}

// letter is the letter of a kind of fault.
func (d *drawing) letter(kind string) string {
	return string(rune('A' + slices.Index(d.kinds, kind)))
}

// legend says what the letters mean.
func (d *drawing) legend(y int) {
	for i, kind := range d.kinds {
		x := 10 + i%legendColumns*(wide+left)/legendColumns
		d.add(`<text x="%d" y="%d">%s  %s</text>`+"\n", x, y+i/legendColumns*legendRow,
			d.letter(kind), html.EscapeString(kind))
	}
}

// dot marks a tick.
func (d *drawing) dot(at time.Time, line int, radius float64, color, title string) {
	if at.Before(d.from) || !at.Before(d.until) {
		return
	}
	x, y := d.place(at, line)
	d.add(`<circle cx="%.1f" cy="%d" r="%g" fill="%s"><title>%s</title></circle>`+"\n",
		x, y+row/2, radius, color, html.EscapeString(title))
}
