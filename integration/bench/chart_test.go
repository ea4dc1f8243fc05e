package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestAChartIsWellFormedWhateverTheNumbers(t *testing.T) {
	t.Parallel()
	picture := chart("a & b", []bar{
		{label: "64 callers <redsync>", times: 12.345, target: 10},
		{label: "slower", times: 0.02, target: 1},
		{label: "nothing", times: 0},
		{label: "no number", times: math.NaN(), target: 3},
		{label: "far", times: 4321, target: 50},
	})
	wellFormed(t, picture)
	for _, want := range []string{"12.3x", "0.02x", "4321x", "not measured", "a &amp; b"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is not in the chart", want)
		}
	}
	wellFormed(t, chart("nothing at all", nil))
}

// wellFormed checks that it is XML, and that nothing lies outside of it.
func wellFormed(t *testing.T, picture string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatalf("%v in:\n%s", err, picture)
		}
	}
}

func TestTheScaleHasAllBars(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		bars      []bar
		low, high float64
	}{
		{nil, 0, 1},
		{[]bar{{times: 12}}, 0, 1.5},
		{[]bar{{times: 2, target: 50}}, 0, 2},
		{[]bar{{times: 0.5}}, -0.5, 1},
	} {
		if low, high := chartRange(tc.bars); low != tc.low || high != tc.high {
			t.Errorf("%+v: from %v to %v, want from %v to %v", tc.bars, low, high, tc.low, tc.high)
		}
	}
}
