package main

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// wrongClock is how far off the clock of the replica is that joins late.
const wrongClock = 4 * time.Second

// trouble makes everything happen that the demo is about, spread over its time, and returns when
// the last of it is done. Whom it hits depends on the seed.
func trouble(ctx context.Context, s *stage, opts options, from time.Time) {
	dice := rand.New(rand.NewPCG(opts.seed, 0))
	at := func(part float64) time.Time {
		return from.Add(time.Duration(part * float64(opts.span)))
	}
	steps := []struct {
		part float64
		do   func()
	}{
		{0.10, func() { killWinner(ctx, s, at(0.28)) }},
		{0.30, func() { freeze(ctx, s, dice, at(0.46)) }},
		{0.48, func() { stopNodes(ctx, s, dice, at(0.62)) }},
		{0.66, func() { _ = s.start("web-skew", wrongClock) }},
		{0.80, func() { redeploy(ctx, s, dice) }},
	}
	for _, step := range steps {
		if sleepUntil(ctx, at(step.part)) != nil {
			return
		}
		step.do()
	}
}

// killWinner kills, without warning, a replica that is in the middle of a run, and starts another
// in its place. It looks for a run of the long job first, because that one has an end to lose; in
// a short demo none may be due in this time, so from the middle of it any run will do.
func killWinner(ctx context.Context, s *stage, until time.Time) {
	began := time.Now()
	long := jobs[1].name
	for now := began; now.Before(until) && ctx.Err() == nil; now = time.Now() {
		r, job := s.runningNow(long)
		if r == nil && now.Sub(began) > until.Sub(now) {
			r, job = s.runningNow("")
		}
		if r != nil {
			kill(ctx, s, r, job)
			return
		}
		_ = sleepUntil(ctx, now.Add(20*time.Millisecond))
	}
	s.omit("nobody was killed: no run was caught within %v",
		time.Since(began).Round(100*time.Millisecond))
}

func kill(ctx context.Context, s *stage, r *replica, job string) {
	end := s.begin("kill", r.name)
	s.setState(r, "killed")
	_ = r.cmd.Process.Signal(syscall.SIGKILL)
	s.say("SIGKILL %s, in the middle of %q", r.name, job)
	_ = sleepUntil(ctx, time.Now().Add(2*time.Second))
	end()
	if err := s.start(r.name+"b", 0); err != nil {
		s.say("%v", err)
	}
}

// freeze stops a replica's process for a while, as a paused machine would.
func freeze(ctx context.Context, s *stage, dice *rand.Rand, until time.Time) {
	living := s.living()
	if len(living) == 0 {
		s.omit("nobody was frozen: no replica was running")
		return
	}
	r := living[dice.IntN(len(living))]
	end := s.begin("freeze", r.name)
	defer end()
	s.setState(r, "frozen")
	s.say("SIGSTOP %s for %v", r.name, time.Until(until).Round(100*time.Millisecond))
	if err := r.cmd.Process.Signal(stopSignal); err != nil {
		s.omit("%s was not frozen: %v", r.name, err)
	}
	_ = sleepUntil(ctx, until)
	_ = r.cmd.Process.Signal(continueSignal)
	s.setState(r, "runs")
	s.say("SIGCONT %s", r.name)
}

// stopNodes stops as many nodes as a quorum can do without, and brings them back with their data.
func stopNodes(ctx context.Context, s *stage, dice *rand.Rand, until time.Time) {
	count := (len(s.addrs) - 1) / 2
	if s.nodes == nil {
		s.omit("no node was stopped: your own are left alone")
		return
	}
	down := dice.Perm(len(s.addrs))[:count]
	for _, i := range down {
		end := s.begin("node", s.addrs[i])
		defer end()
		s.say("node %d goes down", i+1)
		if err := s.setNode(i, false); err != nil {
			s.say("node %d: %v", i+1, err)
		}
	}
	_ = sleepUntil(ctx, until)
	for _, i := range down {
		s.say("node %d is back", i+1)
		if err := s.setNode(i, true); err != nil {
			s.say("node %d: %v", i+1, err)
		}
	}
}

// redeploy ends a replica in order and starts its next version.
func redeploy(ctx context.Context, s *stage, dice *rand.Rand) {
	living := s.living()
	if len(living) == 0 {
		s.omit("nobody was redeployed: no replica was running")
		return
	}
	r := living[dice.IntN(len(living))]
	end := s.begin("redeploy", r.name)
	defer end()
	s.setState(r, "ends")
	s.say("%s is redeployed", r.name)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.gone:
	case <-ctx.Done():
		return
	case <-time.After(6 * time.Second):
		s.say("%s does not end", r.name)
	}
	if err := s.start(r.name+"'", 0); err != nil {
		s.say("%v", err)
	}
}
