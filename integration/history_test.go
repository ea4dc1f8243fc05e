package integration

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Histories: clients in several processes write down what they believed and when, and porcupine
// looks for an order in which one lock that only one can hold would have answered so.
//
// A hold is a gain, some moments at which its client saw it held, and an end. What a client cannot
// know exactly is a span: it gained the lock somewhere within the call, and the lock ended
// somewhere between the last moment at which it was seen held and the first at which it was seen
// over. If a rival's gain was over before the first's last look began, there is no order, and both
// held it.

// The kinds of entry.
const (
	gained = "gain" // a call that returned the lock
	seen   = "held" // a look that found it held, or an extend that succeeded
	ended  = "end"  // an unlock, or the first look that found it over
	failed = "fail" // a call that returned no lock: it says nothing about who holds it
)

// An entry is one operation of a history. Times are of the machine's monotonic clock, which all
// processes share.
type entry struct {
	Client       int
	Kind, Name   string
	Token        uint64
	Contended    bool // failed: because another held it
	Call, Return int64
}

// A lockState is the lock as the model has it.
type lockState struct {
	holder uint64 // the token of whoever holds it; 0: nobody
	max    uint64 // the largest token so far
}

// lockModel is a lock: it is had by one at a time, and tokens grow.
var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, e := state.(lockState), input.(entry)
		switch e.Kind {
		case gained:
			return s.holder == 0 && e.Token > s.max, lockState{holder: e.Token, max: e.Token}
		case seen:
			return s.holder == e.Token, s
		case ended:
			return s.holder == e.Token, lockState{max: s.max}
		}
		return true, s
	},
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byName := map[string][]porcupine.Operation{}
		for _, op := range history {
			name := op.Input.(entry).Name
			byName[name] = append(byName[name], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byName {
			parts = append(parts, part)
		}
		return parts
	},
	DescribeOperation: func(input, _ any) string {
		e := input.(entry)
		return fmt.Sprintf("%s %s %d", e.Kind, e.Name, e.Token)
	},
	DescribeState: func(state any) string {
		s := state.(lockState)
		return fmt.Sprintf("held by %d, largest %d", s.holder, s.max)
	},
}

// A fault is what the nemesis did, for the picture.
type fault struct {
	what       string
	begin, end int64
}

// A history is what was written down.
type history struct {
	entries []entry
	faults  []fault
}

// operations are the entries that say something about the lock. A hold whose client was killed has
// no end: it may have ended at any time after the last look.
func (h *history) operations() (operations []porcupine.Operation) {
	type hold struct {
		name  string
		token uint64
	}
	last := map[hold]entry{}
	var end int64
	for _, e := range h.entries {
		end = max(end, e.Return)
		if e.Kind == failed {
			continue
		}
		operations = append(operations,
			porcupine.Operation{ClientId: e.Client, Input: e, Call: e.Call, Return: e.Return})
		if k := (hold{e.Name, e.Token}); e.Kind == ended {
			last[k] = entry{}
		} else if known, ok := last[k]; !ok || known.Kind != "" && known.Return < e.Return {
			last[k] = e
		}
	}
	for _, e := range last {
		if e.Kind == "" {
			continue
		}
		e.Kind, e.Call, e.Return = ended, e.Return, end+1
		operations = append(operations,
			porcupine.Operation{ClientId: e.Client, Input: e, Call: e.Call, Return: e.Return})
	}
	return operations
}

// check is what porcupine says. Of a history that is not legal, or too long to tell, it keeps a
// picture (HTML).
func (h *history) check(name string) (result porcupine.CheckResult, picture string, err error) {
	result, info := porcupine.CheckOperationsVerbose(lockModel, h.operations(), time.Minute)
	if result == porcupine.Ok {
		return result, "", nil
	}
	var notes []porcupine.Annotation
	for _, f := range h.faults {
		notes = append(notes, porcupine.Annotation{Tag: "faults", Start: f.begin, End: f.end,
			Description: f.what})
	}
	info.AddAnnotations(notes)
	dir := filepath.Join("..", "out", "histories")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return result, "", err
	}
	picture = filepath.Join(dir, name+".html")
	return result, picture, porcupine.VisualizePath(lockModel, info, picture)
}

// A tally is how much a history had of what makes it worth a look.
type tally struct {
	operations, tries, contended, handOvers, faults int
}

func (h *history) tally() (t tally) {
	t.operations, t.faults = len(h.entries), len(h.faults)
	before := map[string]int{} // who had it last
	for _, e := range slices.SortedFunc(slices.Values(h.entries),
		func(a, b entry) int { return cmp.Compare(a.Call, b.Call) }) {
		switch e.Kind {
		case failed:
			t.tries++
			if e.Contended {
				t.contended++
			}
		case gained:
			t.tries++
			if last, ok := before[e.Name]; ok && last != e.Client {
				t.handOvers++
			}
			before[e.Name] = e.Client
		}
	}
	return t
}

func (t tally) String() string {
	return fmt.Sprintf("%d operations, %d of %d tries contended, %d hand-overs, %d faults",
		t.operations, t.contended, t.tries, t.handOvers, t.faults)
}

// told makes a history of lines such as "1 gain 7 10-20": client, kind, token, span.
func told(lines ...string) *history {
	var h history
	for _, line := range lines {
		e := entry{Name: "k"}
		if _, err := fmt.Sscanf(line, "%d %s %d %d-%d", &e.Client, &e.Kind, &e.Token, &e.Call,
			&e.Return); err != nil {
			panic(line)
		}
		h.entries = append(h.entries, e)
	}
	return &h
}

func TestTheCheckerTellsLegalFromIllegal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		history *history
		legal   bool
	}{
		"one after the other": {told("0 gain 1 0-9", "0 held 1 10-11", "0 end 1 12-20",
			"1 gain 2 15-30", "1 end 2 31-32"), true},
		"gained while the first may have ended": {told("0 gain 1 0-9", "0 held 1 10-11",
			"1 gain 2 12-30", "0 end 1 11-99", "1 end 2 40-41"), true},
		"both at once": {told("0 gain 1 0-9", "1 gain 2 12-30", "0 held 1 31-32", "0 end 1 33-34",
			"1 end 2 40-41"), false},
		"the second inside the first": {told("0 gain 1 0-9", "1 gain 2 12-13", "1 end 2 14-15",
			"0 held 1 20-21", "0 end 1 33-34"), false},
		"a token that falls": {told("0 gain 5 0-9", "0 end 5 10-11", "1 gain 4 12-13",
			"1 end 4 14-15"), false},
		"a token twice": {told("0 gain 5 0-9", "0 end 5 10-11", "1 gain 5 12-13", "1 end 5 14-15"),
			false},
		"a killed holder, and the next": {told("0 gain 1 0-9", "0 held 1 10-11", "1 gain 2 12-13",
			"1 end 2 14-15"), true},
		"a killed holder, seen after the next": {told("0 gain 1 0-9", "1 gain 2 12-13",
			"1 end 2 14-15", "0 held 1 20-21"), false},
	} {
		got, picture, err := tc.history.check("checker-" + strings.ReplaceAll(name, " ", "-"))
		if err != nil {
			t.Fatal(err)
		}
		if picture != "" {
			if text, err := os.ReadFile(picture); err != nil || len(text) == 0 {
				t.Errorf("%s: no picture: %v", name, err)
			}
			os.Remove(picture)
		}
		if (got == porcupine.Ok) != tc.legal {
			t.Errorf("%s: porcupine says %v, want legal: %v", name, got, tc.legal)
		}
	}
}
