package guard

import "github.com/quorumlock/quorumlock/internal/model/search"

// Next adds everything that can happen in s.
func (m *model) Next(s State, steps *search.Steps[State]) {
	if s.now < m.LastTime {
		t := s
		t.now++
		steps.Add(t, "time %d", t.now)
	}
	for id := uint8(1); id < s.nextID; id++ {
		if s.known.Has(int(id)) {
			m.asks(s, id, steps)
		}
	}
	m.isAdmitted(s, steps)
	m.loadsScripts(s, steps)
	m.restart(s, steps)
	m.losesData(s, steps)
	if m.FailOvers > 0 {
		m.failsOver(s, steps)
		m.extendsCutOff(s, steps)
	}
}

// usesScripts reports whether the identity stands in the text of the acquire script.
func (m *model) usesScripts() bool { return m.Rules.Witness >= ScriptLoaded }

// asks adds an acquire by a client that knows the node under identity id. It is A's while nobody
// holds the lock, and B's while A does.
func (m *model) asks(s State, id uint8, steps *search.Steps[State]) {
	p := &s.servers[s.primary]
	if m.usesScripts() && !p.scripts.Has(int(id)) {
		m.answersNoScript(s, id, steps)
		return
	}
	votes := p.data.marker == id && p.data.since+m.wait <= s.now && p.data.lockedUntil == 0
	if m.Rules.Witness == InfoInPipeline && p.id != id {
		votes = false
	}
	if !votes {
		return
	}
	if s.holdsUntil != 0 {
		s.rivalVoted = true
		steps.Add(s, "B asks, expecting id%d: server %d, in truth id%d, VOTES FOR B",
			id, s.primary+1, p.id)
		return
	}
	s.holdsUntil = s.now + ttl
	p.data.lockedUntil = s.holdsUntil
	steps.Add(s, "A asks, expecting id%d: server %d, in truth id%d, grants until %d",
		id, s.primary+1, p.id, s.holdsUntil)
}

// answersNoScript adds what a client does that knows the node under identity id and was told
// NOSCRIPT.
func (m *model) answersNoScript(s State, id uint8, steps *search.Steps[State]) {
	p := &s.servers[s.primary]
	switch {
	case m.Rules.Witness == ScriptEvaled:
		p.scripts.Add(int(id))
		steps.Add(s, "a client EVALs its text for id%d", id)
	case m.Rules.Witness == ScriptChecked && p.id != id:
		// The text comes into the cache, but the marker becomes true in the same execution.
		p.scripts.Add(int(id))
		p.admitted = true
		if p.data.marker != p.id {
			p.data.marker, p.data.since = p.id, s.now
		}
		s.known.Add(int(p.id))
		steps.Add(s, "a client EVALs its text for id%d, which finds id%d", id, p.id)
	}
}
