package guard

import "github.com/quorumlock/quorumlock/internal/model/search"

// restart adds restarts of the primary: a new process with a new identity, and with the data of
// the snapshot or none.
func (m *model) restart(s State, steps *search.Steps[State]) {
	if s.restarts > 0 {
		t := s
		t.restarts--
		p := t.newProcess()
		steps.Fault(t, "server %d RESTARTS empty, id%d", s.primary+1, p.id)
		if s.hasSnapshot {
			p.data = s.snapshot
			steps.Fault(t, "server %d RESTARTS from its snapshot, id%d", s.primary+1, p.id)
		}
	}
	if s.slowBoots > 0 {
		s.slowBoots--
		p := s.newProcess()
		p.startedAt -= maxTTL
		steps.Fault(s, "server %d RESTARTS empty, id%d; its clock is stepped and it looks old",
			s.primary+1, p.id)
	}
}

// newProcess replaces the primary's process and returns the new one.
func (s *State) newProcess() *server {
	p := &s.servers[s.primary]
	*p = server{id: s.nextID, startedAt: s.now}
	s.nextID++
	return p
}

// losesData adds FLUSHALL, and the snapshot that a later restart may fall back to.
func (m *model) losesData(s State, steps *search.Steps[State]) {
	if s.snapshots > 0 {
		t := s
		t.snapshots--
		t.snapshot, t.hasSnapshot = s.servers[s.primary].data, true
		steps.Fault(t, "server %d saves a snapshot", s.primary+1)
	}
	if s.flushes > 0 {
		s.flushes--
		p := &s.servers[s.primary]
		p.data, p.flushed = data{}, true
		steps.Fault(s, "server %d is FLUSHED", s.primary+1)
	}
}

// failsOver adds replication, which may lag for ever, and the promotion of the other server.
func (m *model) failsOver(s State, steps *search.Steps[State]) {
	other := 1 - s.primary
	if s.cutOff == 0 && s.servers[other].data != s.servers[s.primary].data {
		t := s
		t.servers[other].data = s.servers[s.primary].data
		t.servers[other].replicated = true
		steps.Add(t, "server %d copies the data of server %d", other+1, s.primary+1)
	}
	if s.failOvers == 0 {
		return
	}
	old := s.primary
	s.failOvers--
	s.primary = other
	o := &s.servers[other]
	if m.Rules.ReplicationID {
		o.id = s.nextID
		s.nextID++
	}
	if !m.Moves {
		o.replicated = true
	}
	if m.CutOff && s.cutOff == 0 {
		t := s
		t.cutOff, t.cutAt = old+1, s.now
		steps.Fault(t, "server %d is PROMOTED, id%d; server %d is cut off and lives",
			other+1, o.id, old+1)
	}
	steps.Fault(s, "server %d is PROMOTED, id%d; server %d is demoted", other+1, o.id, old+1)
}

// extendsCutOff lets A, on the same side of the cut as the old primary, extend its lock there. An
// extend asks for no more than A's own key.
func (m *model) extendsCutOff(s State, steps *search.Steps[State]) {
	if s.cutOff == 0 || s.holdsUntil == 0 {
		return
	}
	if m.Rules.MinReplicas && s.now >= s.cutAt+lag {
		return
	}
	d := &s.servers[s.cutOff-1].data
	if d.lockedUntil == 0 || s.holdsUntil >= s.now+ttl {
		return
	}
	s.holdsUntil = s.now + ttl
	d.lockedUntil = s.holdsUntil
	steps.Add(s, "A extends on server %d, cut off, until %d", s.cutOff, s.holdsUntil)
}
