package ticktest

import (
	"fmt"
	"testing"
	"time"
)

type errorsOf struct{ told []string }

func (e *errorsOf) Helper() {}
func (e *errorsOf) Errorf(format string, args ...any) {
	e.told = append(e.told, fmt.Sprintf(format, args...))
}

func TestEachCheckBites(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	next := at.Add(time.Second)
	for _, c := range []struct {
		name  string
		runs  []Run
		check func(*Record, TB)
		want  int
	}{
		{"once", []Run{{Job: "a", At: at}, {Job: "b", At: at}, {Job: "a", At: next}},
			(*Record).Once, 0},
		{"twice", []Run{{Job: "a", At: at}, {Job: "a", At: at.UTC()}}, (*Record).Once, 1},
		{"on request", []Run{{Job: "a", At: at, Manual: true}, {Job: "a", At: at}},
			(*Record).Once, 0},
		{"all", []Run{{Job: "a", At: at}, {Job: "a", At: next}}, wantBoth, 0},
		{"one is missing", []Run{{Job: "a", At: at}}, wantBoth, 1},
		{"one too many", []Run{{Job: "a", At: at}, {Job: "a", At: next},
			{Job: "a", At: next.Add(1e9)}}, wantBoth, 1},
		{"ordered", []Run{{Job: "a", At: at, Token: 1}, {Job: "a", At: next, Token: 2}},
			(*Record).Ordered, 0},
		{"not ordered", []Run{{Job: "a", At: next}, {Job: "a", At: at}}, (*Record).Ordered, 1},
		{"tokens fall", []Run{{Job: "a", At: at, Token: 2}, {Job: "a", At: next, Token: 2}},
			(*Record).Ordered, 1},
		{"at once", []Run{{Job: "a", At: at}, {Job: "a", At: next}}, (*Record).Apart, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var record Record
			for _, run := range c.runs {
				record.Begin(run)
			}
			var told errorsOf
			c.check(&record, &told)
			if len(told.told) != c.want {
				t.Errorf("told %q, want %d errors", told.told, c.want)
			}
		})
	}
}

func wantBoth(r *Record, t TB) {
	r.All(t, "a", Every(time.Second, time.Unix(999, 0), time.Unix(1001, 0)))
}
