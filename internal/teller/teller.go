// Package teller tells of events in their order, on a goroutine that lives only as long as there
// are some to tell. Whoever has an event never waits for whoever is told: a slow callback must not
// delay the end of a lock.
package teller

import "sync"

// A Teller tells one event after the other. The zero value is ready.
type Teller struct {
	mu      sync.Mutex // guards below
	queue   []func()
	running bool
}

// Tell makes event be called after all that were told before. It does not block.
func (t *Teller) Tell(event func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, event)
	if !t.running {
		t.running = true
		go t.run()
	}
}

func (t *Teller) run() {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			t.running = false
			t.mu.Unlock()
			return
		}
		event := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		event()
	}
}
