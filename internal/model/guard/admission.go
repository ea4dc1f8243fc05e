package guard

import "github.com/quorumlock/quorumlock/internal/model/search"

// isAdmitted adds the admission of the node by a client that has none yet, or lost it. The
// admission script reads the identity itself, so it cannot come too late.
func (m *model) isAdmitted(s State, steps *search.Steps[State]) {
	switch m.Rules.ShortCut {
	case NoShortCut:
		m.admits(s, false, "admission", steps)
	case ByUptime:
		m.admits(s, true, "admission by a client that never saw the node", steps)
		if s.known != 0 {
			m.admits(s, false, "admission by a client that knew it", steps)
		}
	default:
		// Two messages: EVALSHA, which finds out whether the script is cached, then EVAL.
		if s.servers[s.primary].admitted {
			m.admits(s, false, "admission, by EVALSHA", steps)
		} else if !s.believes {
			t := s
			t.believes = true
			steps.Add(t, "EVALSHA of the admission: NOSCRIPT, so the node is believed to be new")
		}
		if s.believes {
			m.admits(s, true, "admission as new, by EVAL", steps)
		}
	}
}

// admits writes the marker, if it is not that of this memory. A node believed to be new waits from
// its start, else from now.
func (m *model) admits(s State, asNew bool, how string, steps *search.Steps[State]) {
	p := &s.servers[s.primary]
	if d := &p.data; d.marker != p.id {
		if m.Rules.ShortCut == ByWitnessCounters && (p.replicated || p.flushed) {
			asNew = false
		}
		asNew = asNew && d.marker == 0
		d.marker, d.since = p.id, s.now
		if asNew {
			d.since = p.startedAt
		}
	}
	p.admitted = true
	s.known.Add(int(p.id))
	s.believes = false
	switch {
	case m.Rules.Witness == ScriptChecked:
		p.scripts.Add(int(p.id))
	case m.usesScripts():
		s.loading.Add(int(p.id))
	}
	steps.Add(s, "%s, of server %d: id%d, waiting since %d",
		how, s.primary+1, p.id, p.data.since)
}

// loadsScripts adds the arrival of a SCRIPT LOAD that follows an admission. A client library may
// repeat it, on a new connection.
func (m *model) loadsScripts(s State, steps *search.Steps[State]) {
	p := &s.servers[s.primary]
	for id := uint8(1); id < s.nextID; id++ {
		if s.loading.Has(int(id)) && !p.scripts.Has(int(id)) {
			t := s
			t.servers[s.primary].scripts.Add(int(id))
			steps.Add(t, "SCRIPT LOAD of the text for id%d comes to server %d", id, s.primary+1)
		}
	}
}
