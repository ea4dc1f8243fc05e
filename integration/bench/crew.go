package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A crew is the processes in which one library hands one lock on: members, see there. This process
// is none of them: it tells them what to do, and puts together what they tell.
type crew struct {
	peer    *peer
	clients int // of all members together
	members []*process

	mu   sync.Mutex // guards what follows; members do not change once there is a rota
	rota rota
}

// A process is a member as its parent sees it.
type process struct {
	name    string // with that of the library, for errors
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	said    bytes.Buffer  // on its standard error; complete once it has ended
	answers chan answer   // closed at the end of its output
	end     func() error  // ends it, however often called
	mu      sync.Mutex    // guards what follows
	orders  *json.Encoder // to its standard input
}

// How long a member may take to open its clients, to answer, and to end.
const openingTime, answerTime, endingTime = time.Minute, 30 * time.Second, 20 * time.Second

// openCrew starts the processes, and shares the clients out. What it has started is in the crew,
// to be closed, also where it fails.
func openCrew(
	ctx context.Context, p *peer, addrs []string, clients, processes int,
) (*crew, error) {
	c := &crew{peer: p, clients: clients}
	for i, s := range deal(0, clients, min(processes, clients)) {
		name := fmt.Sprintf("%s, process %d", p.name, i+1)
		one, err := c.start(name, task{Peer: p.name, Process: i, Addrs: addrs, Clients: s.clients})
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		c.members = append(c.members, one)
	}
	for _, one := range c.members {
		if _, err := one.answer(ctx, openingTime); err != nil {
			return c, err
		}
	}
	return c, nil
}

// start starts a member; process.end ends it.
func (c *crew) start(name string, t task) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(self), answers: make(chan answer)}
	p.cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	p.cmd.Stderr = &p.said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.orders = json.NewEncoder(p.stdin)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.end = sync.OnceValue(p.waitFor)
	go c.listen(p, out)
	return p, nil
}

// listen hears a member until its output ends.
func (c *crew) listen(p *process, out io.Reader) {
	defer close(p.answers)
	told := json.NewDecoder(out)
	for {
		var a answer
		if told.Decode(&a) != nil {
			return // whoever asks next finds that it has ended
		}
		if a.Held != nil {
			c.follow(*a.Held)
			continue
		}
		p.answers <- a
	}
}

// follow tells whoever was followed by the new holder, or is already, that it may ask again.
//
// This is beside the hand-off that it belongs to, but it takes its time (see telling): through two
// pipes and this process, while one of the waiters does not wait, and from the same processors.
// Where there are two waiters, both may be on that way when the lock is freed again: then it waits
// for them, and the faster a library hands on, the more often.
func (c *crew) follow(h turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if followed, ok := c.rota.held(h); ok {
		// One that cannot be told has ended, and is found so when it is asked.
		_ = c.members[followed.Process].tell(order{Do: doFollow, Taker: followed.Taker})
	}
}

// begin gives all that have a share the order for it.
func (c *crew) begin(do, name string, shares []share) error {
	c.mu.Lock()
	c.rota = rota{}
	c.mu.Unlock()
	for i, s := range shares {
		if s.takers == 0 {
			continue
		}
		o := order{Do: do, Name: name, Clients: s.clients, Takers: s.takers}
		if err := c.members[i].tell(o); err != nil {
			return err
		}
	}
	return nil
}

// telling is how long it takes to tell something through two pipes when nothing else is under way:
// here from this process to a member and back, in follow from a member to this one and to a member.
func (c *crew) telling(ctx context.Context) (time.Duration, error) {
	const times = 200
	took := make([]time.Duration, 0, times)
	for range times {
		began := time.Now()
		if err := c.members[0].tell(order{Do: doUse}); err != nil {
			return 0, err
		}
		if _, err := c.members[0].answer(ctx, answerTime); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}

// used is what all members have used of the processors.
func (c *crew) used(ctx context.Context) (all time.Duration, err error) {
	answers, err := c.ask(ctx, order{Do: doUse})
	for _, a := range answers {
		all += a.Used
	}
	return all, err
}

// stop ends what begin began, and returns what became of it. Nobody frees the lock that it holds
// before nobody waits any more.
func (c *crew) stop(ctx context.Context) (all watch, err error) {
	if _, err := c.ask(ctx, order{Do: doRest}); err != nil {
		return all, err
	}
	answers, err := c.ask(ctx, order{Do: doEnd})
	for _, a := range answers {
		all.Holds = append(all.Holds, a.Log.Holds...)
		all.Failed += a.Log.Failed
		if all.First == "" {
			all.First = a.Log.First
		}
	}
	return all, err
}

// ask gives all members an order, and returns their answers, or none.
func (c *crew) ask(ctx context.Context, o order) ([]answer, error) {
	for _, one := range c.members {
		if err := one.tell(o); err != nil {
			return nil, err
		}
	}
	var all []answer
	for _, one := range c.members {
		a, err := one.answer(ctx, answerTime)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// close ends all members at once, and waits for them.
func (c *crew) close() error {
	errs := make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, one := range c.members {
		wg.Go(func() { errs[i] = one.end() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p *process) tell(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.orders.Encode(o); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// answer waits for an answer.
func (p *process) answer(ctx context.Context, most time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case a, ok := <-p.answers:
		if !ok {
			return a, fmt.Errorf("%s: ended too soon", p.name) // close says how
		}
		if a.Err != "" {
			return a, fmt.Errorf("%s: %s", p.name, a.Err)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, fmt.Errorf("%s: no answer: %w", p.name, ctx.Err())
	}
}

// waitFor lets the member end by itself, and kills one that does not.
func (p *process) waitFor() error {
	kill := time.AfterFunc(endingTime, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.stdin.Close()
	for range p.answers { // to the end of its output, as Wait wants it
	}
	if err := p.cmd.Wait(); err != nil {
		said := p.said.Bytes()
		return fmt.Errorf("%s: %w: %s", p.name, err, said[max(0, len(said)-1000):])
	}
	return nil
}
