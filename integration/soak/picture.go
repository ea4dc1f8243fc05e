package main

import (
	"bytes"
	"fmt"
	"html"
	"time"
)

// The picture's measures, in pixels.
const (
	left, top = 130, 50
	row       = 26
	least     = 900
)

// picture draws the timeline as SVG: a row for each replica with a mark for each run, a row for ticks
// that nobody ran, a row for each node; and in all of them the faults.
func picture(from, until time.Time, records []record, faults []fault, v verdict) []byte {
	perSecond := max(8.0, float64(least)/until.Sub(from).Seconds())
	x := func(at time.Time) float64 { return left + at.Sub(from).Seconds()*perSecond }
	replicaRow := func(i int) int { return top + i*row }
	missedRow := top + replicas*row
	nodeRow := func(i int) int { return missedRow + row + i*row }
	width, height := int(x(until))+20, nodeRow(nodes)+20

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="10" y="20" font-size="14">%d ticks due, %d ran once, %d twice, %d missed with a reason, %d wrong</text>`+"\n",
		v.due, v.once, v.twice, len(v.missedAt), len(v.trouble))
	label := func(y int, text string) {
		fmt.Fprintf(&b, `<text x="10" y="%d">%s</text><line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#ddd"/>`+"\n",
			y+row/2+4, html.EscapeString(text), left, y+row/2, width-20, y+row/2)
	}
	for i := range replicas {
		label(replicaRow(i), fmt.Sprintf("replica %d runs", i+1))
	}
	label(missedRow, "nobody ran")
	for i := range nodes {
		label(nodeRow(i), fmt.Sprintf("node %d", i+1))
	}
	for _, f := range faults {
		for _, y := range f.rows(replicaRow, nodeRow) {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#e9c46a" opacity="0.7"><title>%s</title></rect>`+"\n",
				x(f.from), y+2, max(2, x(f.to)-x(f.from)), row-4, html.EscapeString(f.whom()+": "+f.what))
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="8" fill="#555">%s</text>`+"\n",
			x(f.from), f.rows(replicaRow, nodeRow)[0]+row/2+12, html.EscapeString(f.what))
	}
	for _, r := range records {
		if at := time.UnixMilli(r.At); r.Kind != "run" || at.Before(from) || !at.Before(until) {
			continue
		}
		var i, start int
		if _, err := fmt.Sscanf(r.Replica, "web-%d.%d", &i, &start); err != nil {
			continue
		}
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="2.5" fill="#2a6f97"/>`+"\n",
			x(time.UnixMilli(r.At)), replicaRow(i-1)+row/2)
	}
	for ms, why := range v.missedAt {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="3" fill="#d62828"><title>%s</title></circle>`+"\n",
			x(time.UnixMilli(ms)), missedRow+row/2, html.EscapeString(why))
	}
	every := 10 * time.Second
	for until.Sub(from)/every > 40 {
		every *= 3
	}
	for at := from; !at.After(until); at = at.Add(every) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#777">%v</text>`+"\n", x(at), top-8, at.Sub(from))
	}
	fmt.Fprintln(&b, "</svg>")
	return b.Bytes()
}

// rows are those that the fault is drawn in.
func (f fault) rows(replicaRow, nodeRow func(int) int) (ys []int) {
	if f.replica >= 0 {
		return []int{replicaRow(f.replica)}
	}
	for k := range f.count {
		ys = append(ys, nodeRow((f.node+k)%nodes))
	}
	return ys
}
