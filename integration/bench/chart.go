package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A bar is one ratio of the chart: how many times as fast ours is. Where there is a target, the
// chart has a line at it.
type bar struct {
	label  string
	times  float64
	target float64 // 0: none
}

// The chart's measures, in pixels.
const (
	chartLeft, chartWide, chartRight = 370, 480, 90
	chartTop, chartRow, chartBar     = 60, 30, 18
)

// chart draws the ratios as SVG. The scale is logarithmic: twice as fast and half as fast are as
// far from 1 as each other.
func chart(title string, bars []bar) string {
	low, high := chartRange(bars)
	at := func(times float64) float64 {
		part := (math.Log10(times) - low) / (high - low)
		return chartLeft + chartWide*min(max(part, 0), 1)
	}
	width := chartLeft + chartWide + chartRight
	height := chartTop + len(bars)*chartRow + 20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"`, width, height)
	fmt.Fprintf(&b, ` viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="10" y="22" font-size="15">%s</text>`+"\n", html.EscapeString(title))
	for power := math.Ceil(low); power <= high; power++ {
		x := at(math.Pow(10, power))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n",
			x, chartTop-6, x, height-14)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%gx</text>`+"\n",
			x, chartTop-12, math.Pow(10, power))
	}
	for i, one := range bars {
		b.WriteString(one.draw(chartTop+i*chartRow, at))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw draws one bar from 1x to its ratio, with its number and its target.
func (one bar) draw(y int, at func(float64) float64) string {
	var b strings.Builder
	middle := y + chartBar - 4
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
		chartLeft-10, middle, html.EscapeString(one.label))
	if !drawable(one.times) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#555">not measured</text>`+"\n", at(1)+4, middle)
		return b.String()
	}
	from, to := at(min(one.times, 1)), at(max(one.times, 1))
	color := "#2f6fab"
	if one.target > 0 && one.times < one.target {
		color = "#c8782a"
	}
	fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
		from, y, max(to-from, 1), chartBar, color)
	end := to // of what the number stands behind
	if one.target > 0 {
		end = max(to, at(one.target))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black" stroke-width="2"/>`+
			"\n", at(one.target), y-3, at(one.target), y+chartBar+3)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", end+6, middle, times(one.times))
	return b.String()
}

// chartRange is the part of the scale that has all bars and targets, in powers of ten; 1x and 10x
// are always on it.
func chartRange(bars []bar) (low, high float64) {
	low, high = 0, 1
	for _, one := range bars {
		for _, v := range []float64{one.times, one.target} {
			if drawable(v) {
				low = min(low, math.Log10(v))
				high = max(high, math.Log10(v))
			}
		}
	}
	return math.Floor(low*2) / 2, math.Ceil(high*2) / 2
}

// drawable reports whether a ratio has a place on a logarithmic scale.
func drawable(v float64) bool { return v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) }

// times writes a ratio with as many digits as mean something.
func times(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0fx", v)
	case v >= 10:
		return fmt.Sprintf("%.1fx", v)
	}
	return fmt.Sprintf("%.2fx", v)
}
