package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/delay"
)

// A tally is what became of a number of elections of one kind.
type tally struct {
	elections int
	none      int             // nobody won
	several   int             // more than one won, and held the lock at the same time
	took      []time.Duration // from the start to the winner's answer
	err       error           // the first from freeing
}

// An electionResult is one campaign with one number of contenders.
type electionResult struct {
	most       time.Duration
	contenders int
	peers      []peer
	tallies    []tally // by peer
}

// seed is of the delays. The machine's own timing is not repeated by it.
const seed = 1

// measureElections holds the form's elections: many clients, each with connections of its own, try
// for one name at the same moment, once each, over a network that delays every message by a random
// time. The libraries take turns, election by election.
func measureElections(
	ctx context.Context, s *stage, f *form, say progress,
) (all []electionResult, err error) {
	addrs := s.healthy[:usualNodes].Addrs()
	for _, c := range f.campaigns {
		for _, contenders := range c.contenders {
			r, err := c.hold(ctx, addrs, contenders)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
			say("elections, delays of 0 to %v: %d contenders", c.most, contenders)
		}
	}
	return all, nil
}

// hold holds the campaign's elections with one number of contenders.
func (c *campaign) hold(
	ctx context.Context, addrs []string, contenders int,
) (r electionResult, err error) {
	r = electionResult{most: c.most, contenders: contenders, peers: quorumPeers()}
	r.tallies = make([]tally, len(r.peers))
	electorates := make([][]client, len(r.peers))
	defer func() {
		for _, one := range slices.Concat(electorates...) {
			err = errors.Join(err, one.close())
		}
	}()
	for i, p := range r.peers {
		if electorates[i], err = c.electorate(ctx, &p, addrs, contenders); err != nil {
			return r, err
		}
	}
	for n := range c.elections {
		for i := range r.peers {
			name := r.peers[i].key("election", c.most, contenders, n)
			elect(ctx, electorates[i], name, &r.tallies[i])
			pause(ctx, 2*c.most+5*time.Millisecond) // for the losers' releases to arrive
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
		}
	}
	return r, nil
}

// electorate opens the contenders of one library. Each takes a lock of its own, so that it knows
// the nodes as one does that has run for a while.
func (c *campaign) electorate(
	ctx context.Context, p *peer, addrs []string, contenders int,
) (all []client, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := range contenders {
		network := delay.New(0, c.most, seed+uint64(1000*contenders+i))
		one, err := p.open(ctx, addrs, network.Dial)
		if err != nil {
			return all, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, one)
		if err := pair(ctx, one, p.key("rehearsal", i)); err != nil {
			return all, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return all, nil
}

// bid is what one contender's try came to.
type bid struct {
	held held
	err  error
	took time.Duration
}

// elect lets all try for one name at the same moment. Whoever wins keeps the lock until all have
// an answer, so that a second winner is one who holds it beside the first.
func elect(ctx context.Context, contenders []client, name string, t *tally) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	bids := make([]bid, len(contenders))
	start := make(chan struct{})
	var began time.Time // written before start is closed
	var ready, done sync.WaitGroup
	for i, c := range contenders {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			b := &bids[i]
			b.held, b.err = c.try(ctx, name)
			b.took = time.Since(began)
		})
	}
	ready.Wait()
	began = time.Now()
	close(start)
	done.Wait()
	t.count(bids)
	for _, b := range bids {
		if b.err == nil {
			if err := freeLock(ctx, b.held); err != nil && t.err == nil {
				t.err = err
			}
		}
	}
}

func (t *tally) count(bids []bid) {
	t.elections++
	winners := 0
	for _, b := range bids {
		if b.err == nil {
			winners++
			t.took = append(t.took, b.took)
		}
	}
	switch {
	case winners == 0:
		t.none++
	case winners > 1:
		t.several++
	}
}
