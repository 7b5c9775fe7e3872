// Strict: what nothing needs, and what is read before it is written.

package order

import (
	"maps"
	"slices"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// watch makes a machine look for what Strict reports.
func (m *machine) watch() {
	m.strict = &watched{needed: map[int32]bool{}, skipped: map[int32]bool{}, pinned: map[int32]bool{}, unwritten: map[where]*Unwritten{}, edges: map[[2]int]bool{}}
	m.checker = happens.New(m.pair, m.unwritten)
	m.checker.Explain(func(call int32) { m.strict.needed[call] = true })
}

// unwritten is called by the checker.
func (m *machine) unwritten(step, node int32, low, high uint64) {
	is := m.allocations.at(low)
	if is == nil || is.kind == allocPinned || is.kind == allocManaged || is.kind == allocRegistered || is.kind == allocImported {
		return // the host or others may have written it
	}
	at := m.where(step, node)
	u := m.strict.unwritten[at]
	if u == nil {
		u = &Unwritten{Reader: m.side(step, node, happens.Read, happens.Race), Memory: m.memoryAt(low), Low: low, High: high}
		m.strict.unwritten[at] = u
		m.strict.reads = append(m.strict.reads, u)
	}
	u.Count++
	u.Bytes += high - low
}

// strictReport returns what was found.
func (m *machine) strictReport() *Strict {
	s := &Strict{}
	m.needless(s)
	for _, u := range m.strict.reads {
		s.Unwritten = append(s.Unwritten, *u)
	}
	for _, state := range slices.Sorted(maps.Keys(m.graphs)) {
		g := m.graphs[state]
		if g.failed != "" || g.external || g.unknown || !g.launched {
			continue // an edge may order what is not known
		}
		info := &m.process.Graphs[state]
		for _, edge := range g.shape.Needless() {
			if at := g.origin[edge]; at >= 0 && !m.strict.edges[[2]int{state, at}] {
				s.Edges = append(s.Edges, NeedlessEdge{Graph: state, Edge: at, From: info.Edges[at].From, To: info.Edges[at].To})
			}
		}
	}
	return s
}

// needToo takes over what another pass needs.
func (m *machine) needToo(other *machine) {
	if m.strict == nil {
		return
	}
	maps.Copy(m.strict.needed, other.strict.needed)
	for state, g := range other.graphs {
		if g.failed != "" {
			continue
		}
		needed := map[int]bool{}
		for edge := range g.edges {
			needed[edge] = true
		}
		for _, edge := range g.shape.Needless() {
			delete(needed, edge)
		}
		for edge := range needed {
			m.strict.edges[[2]int{state, g.origin[edge]}] = true
		}
	}
}

// took returns how long the threads were in the calls in which they wait, at most.
func (m *machine) took() map[int32]int64 {
	took := map[int32]int64{}
	if m.process.Measured {
		return took
	}
	next := map[uint32]int64{} // when the thread made its next call
	for i := len(m.process.Calls) - 1; i >= 0; i-- {
		c := &m.process.Calls[i]
		if then, known := next[c.Thread]; known && strictNames[c.Kind] != "" {
			took[int32(i)] = max(then-c.Time, 0)
		}
		next[c.Thread] = c.Time
	}
	return took
}

func (c *Cost) add(nanoseconds int64) {
	c.Count++
	c.Nanoseconds += nanoseconds
}

// needless finds the calls of which nothing at their place was needed.
func (m *machine) needless(s *Strict) {
	type place struct {
		kind recording.Kind
		at   uint64
	}
	found, needed := map[place]*Needless{}, map[place]bool{}
	var places []place
	took := m.took()
	for i := range m.process.Calls {
		c := &m.process.Calls[i]
		what := strictNames[c.Kind]
		if what == "" || c.Result != 0 || m.strict.skipped[int32(i)] || c.Kind == recording.Copy && !m.strict.pinned[int32(i)] {
			continue
		}
		at := place{c.Kind, c.Place}
		if found[at] == nil {
			found[at] = &Needless{What: what}
			places = append(places, at)
		}
		found[at].Calls = append(found[at].Calls, c)
		if c.Kind != recording.StreamWait {
			found[at].add(took[int32(i)])
		} else {
			found[at].add(0) // the host does not wait
		}
		needed[at] = needed[at] || m.strict.needed[int32(i)]
	}
	for _, at := range places {
		if at.kind != recording.Copy && at.kind != recording.StreamWait {
			s.Waited.Count += found[at].Count
			s.Waited.Nanoseconds += found[at].Nanoseconds
		}
		switch {
		case at.kind == recording.Copy:
			s.Copies = append(s.Copies, *found[at])
		case needed[at]:
		case at.kind == recording.StreamWait:
			s.Waits = append(s.Waits, *found[at])
		default:
			s.Synchronizations = append(s.Synchronizations, *found[at])
		}
	}
}

var strictNames = map[recording.Kind]string{recording.StreamWait: "wait for an event", recording.EventSync: "synchronization with an event",
	recording.StreamSync: "synchronization with a stream", recording.ContextSync: "synchronization with a context", recording.Copy: "copy that the host waits for"}
