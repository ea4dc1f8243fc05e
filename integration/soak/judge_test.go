package main

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// ran is a run of the tick so many seconds after noon.
func ran(second float64, replica string, token uint64) record {
	return record{Kind: isRun, Replica: replica, At: after(second).UnixMilli(), Token: token,
		came: after(second + 0.02)}
}

// no is a record of tick 1, which was not run, at the end of its Grace.
func no(replica, why, holder string, silent ...int) record {
	return record{Kind: isNo, Replica: replica, At: after(1).UnixMilli(), Why: why, Holder: holder,
		Text: why, silent: silent, came: after(2)}
}

// came is the record, written at another time.
func came(second float64, r record) record {
	r.came = after(second)
	return r
}

// struckNodes and struckReplica are faults between these seconds after noon.
func struckNodes(from, to float64, nodes ...int) fault {
	return fault{what: "frozen", replica: -1, nodes: nodes, from: after(from), to: after(to)}
}

func struckReplica(from, to float64, process string, change func(*fault)) fault {
	f := fault{what: "struck", replica: 1, process: process, from: after(from), to: after(to)}
	change(&f)
	return f
}

// slow is stalls of these nodes.
func slow(second float64, nodes ...int) (stalls []stall) {
	for _, n := range nodes {
		stalls = append(stalls, stall{node: n, from: after(second), to: after(second + 0.6)})
	}
	return stalls
}

func stopped(f *fault) { f.stops = true }
func cutOff(f *fault)  { f.onWays = true }
func skewed(*fault)    {}

func TestTheJudgeSeesWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	first := ran(0, "web-1.1", 1)
	say := func(r record) []record { return []record{first, r} }
	takenBy2 := say(no("web-1.1", taken, "web-2.1"))
	const none = "12:00:01 did not run"
	for name, tc := range map[string]struct {
		records []record
		fault   fault
		stalls  []stall
		want    string // in the only trouble; none: lawful
		why     string // of the miss, if it is lawful
	}{
		"all once": {records: []record{first, ran(1, "web-2.1", 2)}},
		"one twice": {records: []record{first, ran(1, "web-2.1", 2), ran(1, "web-1.1", 3)},
			want: "12:00:01 ran on web-2.1 and web-1.1"},
		"a token that falls": {records: []record{ran(0, "web-1.1", 5), ran(1, "web-2.1", 4)},
			want: "has token 4"},
		"no instant": {records: []record{first, ran(1, "web-2.1", 2), ran(1.5, "web-2.1", 3)},
			want: "12:00:01.500 ran"},
		"one twice, before what is counted": {records: []record{ran(-1, "web-1.1", 1),
			ran(-1, "web-2.1", 2), ran(0, "web-1.1", 3), ran(1, "web-2.1", 4)},
			want: "11:59:59 ran on web-1.1 and web-2.1"},
		"one before it was due": {records: []record{first, came(0.5, ran(1, "web-3.1", 2))},
			want: "12:00:01 ran on web-3.1, 500ms before it was due"},
		"nothing was wrong": {records: takenBy2, want: none},
		"nobody said why": {records: []record{first},
			fault: struckReplica(1, 3, "web-2.1", stopped), want: "said: nothing"},

		"its winner was stopped": {records: takenBy2,
			fault: struckReplica(1, 3, "web-2.1", stopped),
			why:   "web-1.1 says that web-2.1 had it on record"},
		"its claimer was stopped": {records: say(no("web-1.1", undecided, "web-2.1")),
			fault: struckReplica(1.1, 3, "web-2.1", stopped), why: "web-2.1 had claimed it"},
		"another replica was stopped": {records: takenBy2,
			fault: struckReplica(1, 3, "web-3.1", stopped), want: none},
		"the winner's process of before was stopped": {
			records: say(no("web-1.1", taken, "web-2.2")),
			fault:   struckReplica(1, 3, "web-2.1", stopped), want: none},
		"the winner had been stopped long before": {records: takenBy2,
			fault: struckReplica(0, 0.5, "web-2.1", stopped), want: none},
		"the winner was stopped long after": {records: takenBy2,
			fault: struckReplica(2.5, 4, "web-2.1", stopped), want: none},
		"the winner's clock was wrong": {records: takenBy2,
			fault: struckReplica(1, 3, "web-2.1", skewed), want: none},
		"the winner was cut off before": {records: takenBy2,
			fault: struckReplica(-1, 3, "web-2.1", cutOff), why: "web-2.1 had it on record"},

		"three nodes were struck": {records: say(no("web-1.1", undecided, "", 0, 1, 2)),
			fault: struckNodes(0.5, 3, 0, 1, 2), why: "no vote of nodes 1, 2, 3"},
		"three nodes were struck, others were silent": {
			records: say(no("web-1.1", undecided, "", 2, 3, 4)),
			fault:   struckNodes(0.5, 3, 0, 1, 2), want: none},
		"two nodes were struck": {records: say(no("web-1.1", undecided, "", 0, 1)),
			fault: struckNodes(0.5, 3, 0, 1), want: none},
		"two nodes were struck that may know of a rival": {
			records: say(no("web-1.1", undecided, "web-2.1", 0, 1)),
			fault:   struckNodes(0.5, 3, 0, 1),
			why:     "saw marks of web-2.1, and nothing of nodes 1, 2"},
		"three nodes were struck after they gave no vote": {
			records: say(came(1.4, no("web-1.1", undecided, "", 0, 1, 2))),
			fault:   struckNodes(1.5, 3, 0, 1, 2), want: none},
		"three nodes had been struck long before": {
			records: say(no("web-1.1", undecided, "", 0, 1, 2)),
			fault:   struckNodes(-9, -6, 0, 1, 2), want: none},

		"the machine was too slow for three nodes": {
			records: say(no("web-1.1", undecided, "", 0, 1, 2)), stalls: slow(1.1, 0, 1, 2),
			why: "a PING to node 3 took 600ms, from 12:00:01.1"},
		"two nodes were struck, and the machine was too slow for another": {
			records: say(no("web-1.1", undecided, "", 0, 1, 2)), fault: struckNodes(0.5, 3, 0, 1),
			stalls: slow(1.1, 2), why: "a PING to node 3 took"},
		"the machine was too slow for two nodes": {
			records: say(no("web-1.1", undecided, "", 0, 1, 2)), stalls: slow(1.1, 0, 1),
			want: none},
		"two nodes were frozen, and answered late": {
			records: say(no("web-1.1", undecided, "", 0, 1, 1)), fault: struckNodes(1, 3, 0, 1),
			stalls: slow(1.1, 0, 1), want: none},
		"the machine was too slow for two nodes, of which one is named twice": {
			records: say(no("web-1.1", undecided, "", 0, 1, 1)), stalls: slow(1.1, 0, 1),
			want: none},
		"the machine was too slow for others": {
			records: say(no("web-1.1", undecided, "", 0, 1, 2)), stalls: slow(1.1, 0, 3, 4),
			want: none},
		"the machine was too slow later": {
			records: say(no("web-1.1", undecided, "", 0, 1, 2)), stalls: slow(2.5, 0, 1, 2),
			want: none},

		"passed over, the run's replica was stopped": {
			records: say(no("web-2.1", passedOver, "web-1.1")),
			fault:   struckReplica(0, 3, "web-1.1", stopped),
			why:     "web-2.1 met the run lock of web-1.1, which ran 12:00:00"},
		"passed over, and nobody had run": {records: say(no("web-2.1", passedOver, "web-3.1")),
			fault: struckReplica(0, 3, "web-3.1", stopped), want: none},
		"passed over, another was stopped": {records: say(no("web-2.1", passedOver, "web-1.1")),
			fault: struckReplica(0, 3, "web-3.1", stopped), want: none},
		"passed over, three nodes could not free it": {
			records: say(no("web-2.1", passedOver, "web-1.1")),
			fault:   struckNodes(0, 0.9, 0, 1, 2), why: "met the run lock"},
		"passed over, the run's replica was stopped long after it": {
			records: []record{ran(-9, "web-1.1", 1), ran(0, "web-3.1", 2),
				no("web-2.1", passedOver, "web-1.1")},
			fault: struckReplica(0.5, 3, "web-1.1", stopped), want: none},
		"passed over, three nodes were struck later": {
			records: say(came(1.2, no("web-2.1", passedOver, "web-1.1"))),
			fault:   struckNodes(1.5, 3, 0, 1, 2), want: none},
		"passed over, two nodes were struck": {
			records: say(no("web-2.1", passedOver, "web-1.1")),
			fault:   struckNodes(0, 0.9, 0, 1), want: none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(noon, after(2), tc.records, []fault{tc.fault}, tc.stalls)
			lawful := tc.want == ""
			if lawful && len(v.trouble) > 0 ||
				!lawful && (len(v.trouble) != 1 || !strings.Contains(v.trouble[0], tc.want)) {
				t.Errorf("got %q, want %q", v.trouble, tc.want)
			}
			if tc.why == "" {
				return
			}
			if len(v.missed) != 1 || !strings.Contains(v.missed[0].detail, tc.why) ||
				!strings.Contains(v.missed[0].detail, tc.fault.what) {
				t.Errorf("got %v, want %q and the fault", v.missed, tc.why)
			}
		})
	}
}

// A frozen node answers late, and says nothing about the machine.
func TestStallsOfStruckNodesAreNotTheMachines(t *testing.T) {
	t.Parallel()
	faults := []fault{struckNodes(1, 3, 0, 1)}
	stalls := append(slow(2, 0, 4), slow(5, 1)...)
	v := judge(noon, noon, nil, faults, stalls)
	if len(v.stalls) != 2 || v.stalls[0].node != 4 || v.stalls[1].node != 1 {
		t.Errorf("got %+v, want those of node 4, and of node 1 after its fault", v.stalls)
	}
}

func TestThePictureHasEveryRunAndEveryFault(t *testing.T) {
	t.Parallel()
	records := []record{ran(0, "web-1.1", 1), ran(2, "web-3.2", 2),
		no("web-1.1", undecided, "", 0, 1, 2)}
	faults := []fault{struckNodes(0.5, 3, 0, 1, 2), struckReplica(4, 5, "web-2.1", stopped)}
	until := after(2*band.Seconds() + 3)
	v := judge(noon, until, records, faults, nil)
	got := string(picture(noon, until, records, faults, v))
	for text, times := range map[string]int{
		"<circle": 3, "<rect": 1 + 3 + 1, "web-1.1 ran 12:00:00": 1, "web-3.2 ran 12:00:02": 1,
		"no vote of nodes 1, 2, 3": 1, ">A</text>": 1, ">B</text>": 1, "replica: struck</text>": 1,
		">node 5</text>": 3, "NaN": 0,
	} {
		if n := strings.Count(got, text); n != times {
			t.Errorf("%q is there %d times, want %d", text, n, times)
		}
	}
}
