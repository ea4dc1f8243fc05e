package main

import (
	"context"
	"testing"
	"time"
)

func TestWhomAKillMayHit(t *testing.T) {
	t.Parallel()
	s := &stage{replicas: []*replica{
		{name: "idle", state: "runs"},
		{name: "frozen", state: "frozen", running: map[string]int64{jobs[five].name: 1}},
		{name: "short", state: "runs", running: map[string]int64{jobs[second].name: 1}},
	}}
	if r, job := s.runningNow(jobs[five].name); r != nil {
		t.Errorf("in the middle of the long job: %s in %q, want nobody", r.name, job)
	}
	if r, job := s.runningNow(""); r == nil || r.name != "short" || job != jobs[second].name {
		t.Errorf("in the middle of any: %v in %q, want the one that runs", r, job)
	}
}

func TestAKillThatFoundNobodyIsToldInTheTable(t *testing.T) {
	t.Parallel()
	s := &stage{replicas: []*replica{{name: "idle", state: "runs"}}}
	killWinner(context.Background(), s, time.Now())
	if got := s.verdict().omitted; len(got) != 1 {
		t.Errorf("not shown: %q, want that nobody was killed", got)
	}
}
