package vote

import "github.com/quorumlock/quorumlock/internal/model/search"

// nodeActs adds the arrival at node i of each message that attempt k has under way to it.
func (m *model) nodeActs(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	a := s.attempts[k].phase
	if n.late.Has(k) && (a != asking || n.answers[k] == silent) {
		m.lateAcquire(s, k, i, steps)
	}
	if n.release.Has(k) {
		t := s
		t.nodes[i].release.Remove(k)
		if n.holder == of(k) {
			t.nodes[i].holder = 0
		}
		steps.Add(t, "node %d releases %s", i+1, m.names[k])
	}
	if a == asking && n.answers[k] == asked {
		m.answers(s, k, i, steps)
	}
}

// answers adds node i's answer, or its silence.
func (m *model) answers(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	if n.dead || n.cutOff.Has(k) {
		n.answers[k] = silent
		steps.Add(s, "%s hears nothing from node %d", m.names[k], i+1)
		return
	}
	if s.losses > 0 {
		t := s
		t.losses--
		t.nodes[i].answers[k] = silent
		t.nodes[i].late.Add(k)
		steps.Fault(t, "%s's acquire to node %d is late", m.names[k], i+1)
	}
	if n.holder == 0 {
		n.holder = of(k)
	}
	if s.losses > 0 {
		t := s
		t.losses--
		t.nodes[i].answers[k] = silent
		steps.Fault(t, "node %d answers %s: held by %s, but that is lost",
			i+1, m.names[k], m.names[n.holder-1])
	}
	n.answers[k] = heldBy + answer(n.holder)
	steps.Add(s, "node %d answers %s: held by %s", i+1, m.names[k], m.names[n.holder-1])
}

// lateAcquire: what it gains is released again once its answer comes, unless the attempt still
// asks, has won, or is dead.
func (m *model) lateAcquire(s State, k, i int, steps *search.Steps[State]) {
	n := &s.nodes[i]
	n.late.Remove(k)
	if n.holder == 0 {
		n.holder = of(k)
		switch s.attempts[k].phase {
		case yielded, gaveUp:
			n.release.Add(k)
		}
	}
	steps.Add(s, "%s's late acquire comes to node %d", m.names[k], i+1)
}
