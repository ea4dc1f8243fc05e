package schedule

import "sync"

// A gate counts who is inside, and can be closed.
type gate struct {
	mu     sync.Mutex // guards below
	inside int
	closed bool
	empty  chan struct{} // made by close; closed when nobody is inside any more
}

// enter reports whether the gate is open; whoever went in has to leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.closed {
		close(g.empty)
	}
}

// close lets nobody in any more. What it returns is closed when nobody is inside. It is called
// once.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.empty = make(chan struct{})
	if g.inside == 0 {
		close(g.empty)
	}
	return g.empty
}
