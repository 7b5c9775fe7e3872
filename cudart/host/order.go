// The order checker: derives which command happens before which from the submitted commands alone, whatever the timing was.

package host

import (
	"slices"

	"github.com/dagrun/dagrun/cudart"
)

func (c clock) at(l sequence) uint64 {
	if int(l) < len(c) {
		return c[l]
	}
	return 0
}

// join raises c to the later time of the two, sequence by sequence.
func (c *clock) join(o clock) {
	if len(*c) < len(o) {
		*c = append(*c, make(clock, len(o)-len(*c))...)
	}
	for i, t := range o {
		(*c)[i] = max((*c)[i], t)
	}
}

// tick advances a sequence by one and returns its new time.
func (c *clock) tick(l sequence) uint64 {
	if int(l) >= len(*c) {
		*c = append(*c, make(clock, int(l)+1-len(*c))...)
	}
	(*c)[l]++
	return (*c)[l]
}

func newOrder() *order { return &order{} }

// newSequence returns an unused sequence. A retired one is reused once the host has waited for all of it.
func (o *order) newSequence() sequence {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, l := range o.retired {
		if o.host.at(l) >= o.clocks[l].at(l) {
			o.retired = slices.Delete(o.retired, i, i+1)
			return l
		}
	}
	o.clocks = append(o.clocks, nil)
	return sequence(len(o.clocks) - 1)
}

// retire gives a sequence back.
func (o *order) retire(l sequence) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.retired = append(o.retired, l)
	o.mu.Unlock()
}

// stands returns the clock of a stream, for a host that is about to wait for it.
func (o *order) stands(q *queue) clock {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.clocks[q.sequence])
}

// waited notes that the host has waited for something.
func (o *order) waited(c clock) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.host.join(c)
	o.mu.Unlock()
}

// record gives an event the clock of its stream. The caller holds the event's mu.
func (o *order) record(e *event, q *queue) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.clocks[q.sequence]
	c.join(o.host)
	e.clock = append(e.clock[:0:0], *c...)
}

// hold orders a stream after an event's last record.
func (o *order) hold(after clock, q *queue) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.clocks[q.sequence].join(after)
	o.mu.Unlock()
}

// before reports whether a happened before b. b happens now.
func (o *order) before(a, b epoch, now clock) bool {
	if a.by == nil {
		return true
	}
	if a.sequence == b.sequence && a.time == b.time {
		return a.node == b.node || o.search.reaches(b.graph, a.node, b.node)
	}
	return now.at(a.sequence) >= a.time
}

// race describes two accesses that nothing orders.
func race(found conflict, second epoch, m *memory) *cudart.RaceError {
	side := func(e epoch) cudart.RaceAccess {
		a := cudart.RaceAccess{Label: e.by.label, Node: e.by.node, Index: e.by.index, StreamNumber: -1, Write: e.by.accesses[e.access].Write}
		if e.node < 0 {
			a.Stream, a.StreamNumber = e.by.stream, e.by.stream.queue.id
		}
		return a
	}
	a := second.by.accesses[second.access]
	shift := a.Offset + int64(m.base-a.Ptr)
	r := &cudart.RaceError{First: side(found.with), Second: side(second), Buffer: a.Name, From: found.from + shift, To: found.to + shift}
	if a.Name == "" {
		r.Buffer, r.From, r.To = m.String(), found.from, found.to
	}
	return r
}

// reaches reports whether b depends on a, directly or through others.
func (s *search) reaches(t *table, a, b int32) bool {
	if len(s.seen) < len(t.commands) {
		s.seen = make([]uint32, len(t.commands))
		s.turn = 0
	}
	s.turn++
	s.open = append(s.open[:0], b)
	for len(s.open) > 0 {
		n := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		for _, d := range t.before(n) {
			if d == a {
				return true
			}
			if d > a && s.seen[d] != s.turn {
				s.seen[d] = s.turn
				s.open = append(s.open, d)
			}
		}
	}
	return false
}

// conflict is an earlier access that a new one is not ordered after, and the bytes that both access.
type conflict struct {
	with     epoch
	from, to int64
}

// before returns the nodes that a node waits for.
func (t *table) before(n int32) []int32 { return t.deps[t.depStart[n]:t.depStart[n+1]] }
