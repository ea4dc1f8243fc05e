package ticksim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/quorum"
)

// A way is a process's way to a node. It sees what is sent, and cuts the process off between a win
// and its commit.
type way struct {
	*fakenode.Link
	*process
}

// A fate is what becomes of one claim's commit.
type fate struct {
	cut    bool
	passes int           // so many nodes still get the commit
	alone  bool          // only the commit is lost: answers come, the process is well, and goes on
	heals  time.Duration // 0: the process dies
}

var errCut = errors.New("write tcp: broken pipe")

// Exec is for quorum.Node.
func (w *way) Exec(ctx context.Context, batch *quorum.Batch) error {
	w.standsStill()
	for i := range batch.Calls {
		if c := batch.Calls[i].Command; c.Script.Name == "commit" && w.cutsOff(c.Words()[2]) {
			return errCut
		}
	}
	return w.Link.Exec(ctx, batch)
}

// cutsOff decides on a commit that is about to be sent, and reports whether it is not.
func (p *process) cutsOff(owner string) bool {
	if p.calm {
		return false
	}
	p.mu.Lock()
	f := p.fates[owner]
	if f == nil {
		f = p.newFate()
		p.fates[owner] = f
	}
	strikes := f.cut && f.passes == 0 && !f.alone
	f.passes--
	stops := f.cut && f.passes < 0
	p.mu.Unlock()
	if strikes {
		p.strike(f)
	}
	return stops
}

// newFate rolls the dice. Called with p.mu held.
func (p *process) newFate() *fate {
	p.counts.claims.Add(1)
	roll := p.dice.Float64()
	switch {
	case p.isOver():
		return &fate{}
	case roll < loseChance: // it comes to a minority, and everything else arrives
		p.counts.commitsLost.Add(1)
		return &fate{cut: true, alone: true, passes: p.dice.IntN(p.nodesNeeded())}
	case roll >= loseChance+cutChance:
		return &fate{}
	}
	p.counts.claimsCut.Add(1)
	f := &fate{cut: true}
	if p.dice.IntN(5) == 0 { // the commit itself gets through, to some of the nodes; no answer does
		f.passes = 1 + p.dice.IntN(p.nodesNeeded())
		p.counts.commitsCut.Add(1)
	}
	if p.dice.IntN(2) == 0 {
		f.heals = between(p.dice, 100*time.Millisecond, 20*time.Second)
	}
	return f
}

// strike cuts the process off.
func (p *process) strike(f *fate) {
	if f.heals > 0 {
		p.cut("cut off between win and commit", f.heals)
		return
	}
	p.die("died between win and commit")
	select {
	case p.slot.died <- p:
	default:
	}
}

func (w *world) nodesNeeded() int { return quorum.Majority(w.plan.nodes) }

func (w *world) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}
