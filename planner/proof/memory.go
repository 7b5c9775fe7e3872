// The proof of a memory layout: every device buffer lies in its arena, and only buffers that are never alive together share bytes. Shares
// no code with the layout.

package proof

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// deviceEnds holds the end of each device's arena. There are few devices, so a linear search finds one.
type deviceEnds []deviceEnd

type deviceEnd struct {
	device int32
	end    int64
}

// of returns the end of a device's arena, to read or change.
func (d *deviceEnds) of(device int32) *int64 {
	for i := range *d {
		if (*d)[i].device == device {
			return &(*d)[i].end
		}
	}
	*d = append(*d, deviceEnd{device: device})
	return &(*d)[len(*d)-1].end
}

// checkMemory returns the first fault of a plan's layout. readFirst tells for each buffer whether a replay reads bytes of it before writing
// them.
func checkMemory(g *dag.Graph, p *plan.Plan, s *schedule, clocks clockSource, readFirst []bool) *Violation {
	ends, v := checkPlacements(g, p)
	if v != nil {
		return v
	}
	if v := checkArena(p, ends); v != nil {
		return v
	}
	kept, v := checkKept(g, p, readFirst)
	if v != nil {
		return v
	}
	return checkShared(g, p, s, clocks, kept)
}

// checkShared checks that no two buffers share bytes while both are alive. It leaves open those that only one loop or branch uses; they are
// checked in its bodies.
func checkShared(g *dag.Graph, p *plan.Plan, s *schedule, clocks clockSource, kept []bool) *Violation {
	if !anyShared(p) {
		return nil
	}
	for low := 0; low < len(p.Streams); low += clocks.width() {
		m := newMemoryWalk(g, p, s)
		if v := m.walk(clocks, low, kept); v != nil {
			return v
		}
	}
	return nil
}

// CheckPlaced checks each of a plan's placements by itself. The error is a *Violation.
func CheckPlaced(g *dag.Graph, p *plan.Plan) error {
	_, v := checkPlacements(g, p)
	return violationError(v)
}

// checkPlacements checks each placement by itself and returns where each device's arena ends.
func checkPlacements(g *dag.Graph, p *plan.Plan) (deviceEnds, *Violation) {
	if v := checkPresent(g, p); v != nil {
		return nil, v
	}
	var ends deviceEnds
	var end *int64
	k, textured := 0, g.Textured()
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if !b.InArena() {
			continue
		}
		if v := checkPlacement(g, p, k, dag.BufferID(i)); v != nil {
			return nil, v
		}
		m := &p.Memory[k]
		if textured != nil && textured[i] && m.Offset%plan.TextureAlign != 0 {
			v := newViolation(plan.ErrMemory, "%q is placed at byte %d, which is not a multiple of %d, as a texture must be", plan.BufferName(g, m.Buffer),
				m.Offset, plan.TextureAlign)
			v.Buffer, v.BufferName = m.Buffer, plan.BufferName(g, m.Buffer)
			return nil, v
		}
		if end == nil || p.Memory[k-1].Device != m.Device {
			end = ends.of(m.Device)
		}
		*end = max(*end, m.Offset+m.Bytes)
		k++
	}
	if k < len(p.Memory) {
		return nil, newViolation(plan.ErrOtherGraph, "the plan places %q, which is not a device buffer of the graph, or places it twice",
			plan.BufferName(g, p.Memory[k].Buffer)).
			fix("plan this graph again")
	}
	return ends, nil
}

// checkPlacement checks that the k-th placement is that of a buffer, and correct by itself.
func checkPlacement(g *dag.Graph, p *plan.Plan, k int, buffer dag.BufferID) *Violation {
	b := &g.Buffers[buffer]
	var v *Violation
	if k >= len(p.Memory) || p.Memory[k].Buffer > buffer {
		v = newViolation(plan.ErrMemory, "the plan does not place %q", plan.BufferName(g, buffer)).fix("lay the memory out again")
	} else if m := p.Memory[k]; m.Buffer < buffer {
		v = newViolation(plan.ErrMemory, "placement %d is of %q, which is not the next device buffer", k, plan.BufferName(g, m.Buffer)).
			fix("list every device buffer once, by id")
	} else if m.Device != b.Device || m.Bytes != b.Bytes {
		v = newViolation(plan.ErrOtherGraph, "the plan places %q as %d bytes on device %d, but it has %d bytes on device %d",
			plan.BufferName(g, buffer), m.Bytes, m.Device, b.Bytes, b.Device).fix("plan this graph again")
	} else if m.Offset < 0 || m.Bytes < 0 || m.Offset > math.MaxInt64-m.Bytes {
		v = newViolation(plan.ErrMemory, "%q is placed at byte %d with %d bytes, outside any arena", plan.BufferName(g, buffer), m.Offset, m.Bytes)
	} else if m.Offset%plan.ArenaAlign != 0 {
		v = newViolation(plan.ErrMemory, "%q is placed at byte %d, which is not a multiple of %d", plan.BufferName(g, buffer), m.Offset, plan.ArenaAlign)
	} else {
		return nil
	}
	v.Buffer, v.BufferName = buffer, plan.BufferName(g, buffer)
	return v
}

// checkArena compares the ends of the arenas with what the plan says it needs; a schedule made by hand may leave that at 0.
func checkArena(p *plan.Plan, ends deviceEnds) *Violation {
	total := int64(0)
	for _, d := range ends {
		if total > math.MaxInt64-d.end {
			return newViolation(plan.ErrMemory, "the arenas together need more than 2^63 - 1 bytes")
		}
		total += d.end
	}
	if p.Stats.PeakDeviceBytes != 0 && total > p.Stats.PeakDeviceBytes {
		return newViolation(plan.ErrMemory, "the placements need %d bytes, the plan's arenas have %d", total, p.Stats.PeakDeviceBytes).
			fix("lay the memory out again")
	}
	return nil
}

// anyShared reports whether any bytes may be shared. That is not so if placements simply follow each other.
func anyShared(p *plan.Plan) bool {
	var ends deviceEnds
	var end *int64
	for k := range p.Memory {
		m := &p.Memory[k]
		if end == nil || p.Memory[k-1].Device != m.Device {
			end = ends.of(m.Device)
		}
		if m.Bytes == 0 {
			continue
		}
		if m.Offset < *end {
			return true
		}
		*end = m.Offset + m.Bytes
	}
	return false
}

// checkKept returns which buffers the plan keeps, or the first fault of its list. The list must have every buffer whose contents matter
// before the first replay, after the last, or from one replay to the next. Scratch has no contents outside its kernel.
func checkKept(g *dag.Graph, p *plan.Plan, readFirst []bool) ([]bool, *Violation) {
	kept := make([]bool, len(g.Buffers))
	last := int32(-1)
	for k, b := range p.Kept {
		if b <= dag.BufferID(last) || int(b) >= len(g.Buffers) || !g.Buffers[b].InArena() {
			return nil, newViolation(plan.ErrMemory, "entry %d of the plan's kept buffers is %q: the list must have device buffers only, each once, in the order of ids",
				k, plan.BufferName(g, b)).
				fix("plan this graph again")
		}
		kept[b], last = true, int32(b)
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if kept[i] || !b.InArena() {
			continue
		}
		reason := ""
		switch {
		case b.Init != nil:
			reason = "has contents before the first replay"
		case b.Save != "" || b.Expect != nil:
			reason = "is read after the last replay"
		case readFirst[i] && !b.Scratch:
			reason = "is read before it is written"
		default:
			continue
		}
		v := newViolation(plan.ErrMemory, "%q %s, but the plan does not keep its bytes", plan.BufferName(g, dag.BufferID(i)), reason).fix("plan this graph again")
		v.Buffer, v.BufferName = dag.BufferID(i), plan.BufferName(g, dag.BufferID(i))
		return nil, v
	}
	return kept, nil
}

// touch is the last access to a placement on one stream so far.
type touch struct {
	stream, node int32
	next         int32 // another of the placement, plus 1
}

// placementState is what a walk knows about a placement.
type placementState struct {
	touches int32 // plus 1: the first of a list
	before  int32 // plus 1: the first of a list of the placements that it took bytes from
	after   int32 // plus 1: the placement that took bytes from it
	kept    bool
}

// displacedBy is an entry in the list of the placements that a placement took bytes from.
type displacedBy struct{ placement, next int32 }

// deviceArenas holds the arenas of all devices.
type deviceArenas []deviceArena

type deviceArena struct {
	device int32
	arena  arena
}

func (d *deviceArenas) of(device int32) *arena {
	for i := range *d {
		if (*d)[i].device == device {
			return &(*d)[i].arena
		}
	}
	*d = append(*d, deviceArena{device: device})
	return &(*d)[len(*d)-1].arena
}

// memoryWalk follows which placement has which bytes. A placement takes its bytes at its first access in submission order. All accesses to
// the placements that had these bytes must have finished before it starts on any stream, and none may come later. The same was checked
// between those placements and the ones that had the bytes before them.
type memoryWalk struct {
	g          *dag.Graph
	p          *plan.Plan
	s          *schedule
	index      []int32 // by buffer: its placement, plus 1
	placements []placementState
	touches    []touch
	displaced  []displacedBy
	arenas     deviceArenas
	low        int
	width      int
	alone      []dag.NodeID // as usedAlone has it; nil: there are no loops and branches
}

func newMemoryWalk(g *dag.Graph, p *plan.Plan, s *schedule) *memoryWalk {
	m := &memoryWalk{g: g, p: p, s: s, index: make([]int32, len(g.Buffers)), placements: make([]placementState, len(p.Memory)),
		touches: make([]touch, 0, 2*len(p.Memory)), displaced: make([]displacedBy, 0, len(p.Memory))}
	for k := range p.Memory {
		if p.Memory[k].Bytes > 0 {
			m.index[p.Memory[k].Buffer] = int32(k) + 1
		}
	}
	if g.HasControl() {
		m.alone = usedAlone(g)
	}
	return m
}

// walk checks the accesses on the source streams from low.
func (m *memoryWalk) walk(clocks clockSource, low int, kept []bool) (v *Violation) {
	m.low, m.width = low, clocks.width()
	for b, kept := range kept {
		if k := m.index[b] - 1; kept && k >= 0 {
			m.placements[k].kept = true
			if m.take(k); m.placements[k].before > 0 {
				return m.keptViolation(k, m.displaced[m.placements[k].before-1].placement)
			}
		}
	}
	clocks.begin(low)
	for {
		node, clock := clocks.next()
		if node < 0 {
			return m.checkUnused()
		}
		for _, a := range m.g.Accesses(dag.NodeID(node)) {
			if k := m.index[a.Buffer] - 1; k >= 0 && a.Lo < a.Hi && !m.placements[k].kept {
				if v := m.access(k, node, clock); v != nil {
					return v
				}
			}
		}
	}
}

// checkUnused checks that buffers that no node uses do not share bytes with kept buffers.
func (m *memoryWalk) checkUnused() *Violation {
	for k := range int32(len(m.placements)) {
		t := &m.placements[k]
		if t.kept || t.touches > 0 || m.p.Memory[k].Bytes == 0 {
			continue
		}
		m.take(k)
		for at := t.before; at > 0; at = m.displaced[at-1].next {
			if q := m.displaced[at-1].placement; m.placements[q].kept {
				return m.keptViolation(q, k)
			}
		}
	}
	return nil
}

// access checks one access and remembers it.
func (m *memoryWalk) access(k, node int32, clock []int32) *Violation {
	t := &m.placements[k]
	if t.after > 0 {
		return m.reuseViolation(k, t.after-1, node)
	}
	stream := m.s.spots[node].stream
	at := t.touches
	for at > 0 && m.touches[at-1].stream != stream {
		at = m.touches[at-1].next
	}
	if at > 0 {
		m.touches[at-1].node = node // what comes before the first access on this stream also comes before this one
		return nil
	}
	if t.touches == 0 {
		m.take(k)
	}
	m.touches = append(m.touches, touch{stream, node, t.touches})
	t.touches = int32(len(m.touches))
	for at := t.before; at > 0; at = m.displaced[at-1].next {
		q := m.displaced[at-1].placement
		if m.placements[q].kept {
			return m.keptViolation(q, k)
		}
		for u := m.placements[q].touches; u > 0; u = m.touches[u-1].next {
			if m.alone != nil && m.touches[u-1].node == node && m.alone[m.p.Memory[k].Buffer] >= 0 && m.alone[m.p.Memory[q].Buffer] >= 0 {
				continue
			}
			last := m.s.spots[m.touches[u-1].node]
			if own := int(last.stream) - m.low; own >= 0 && own < m.width && clock[own] < last.pos {
				return m.sharedViolation(q, k, m.touches[u-1].node, node)
			}
		}
	}
	return nil
}

// take gives a placement its bytes and lists the placements that had them.
func (m *memoryWalk) take(k int32) {
	at := &m.p.Memory[k]
	t := &m.placements[k]
	m.arenas.of(at.Device).take(at.Offset, at.Offset+at.Bytes, k, func(q int32) {
		if m.placements[q].after != k+1 {
			m.placements[q].after = k + 1
			m.displaced = append(m.displaced, displacedBy{q, t.before})
			t.before = int32(len(m.displaced))
		}
	})
}

// overlap starts a violation about the bytes that two placements share.
func (m *memoryWalk) overlap(a, b int32) *Violation {
	x, y := &m.p.Memory[a], &m.p.Memory[b]
	v := newViolation(plan.ErrMemory, "")
	v.Buffer, v.BufferName = x.Buffer, plan.BufferName(m.g, x.Buffer)
	v.Other, v.OtherName = y.Buffer, plan.BufferName(m.g, y.Buffer)
	v.Lo, v.Hi = max(x.Offset, y.Offset), min(x.Offset+x.Bytes, y.Offset+y.Bytes)
	return v
}

// keptViolation reports a buffer that shares bytes although it must not.
func (m *memoryWalk) keptViolation(kept, other int32) *Violation {
	v := m.overlap(kept, other)
	v.Problem = fmt.Sprintf("%q must keep its bytes for the whole program, but %q is also placed on bytes [%d:%d) of device %d",
		v.BufferName, v.OtherName, v.Lo, v.Hi, m.p.Memory[kept].Device)
	return v.fix("place %q elsewhere", v.OtherName)
}

// reuseViolation reports a buffer that is used again after another has taken its bytes.
func (m *memoryWalk) reuseViolation(k, after, node int32) *Violation {
	first := m.placements[after].touches // the oldest of the list
	for m.touches[first-1].next > 0 {
		first = m.touches[first-1].next
	}
	v := m.overlap(k, after).node(m.g, dag.NodeID(node))
	v.Before = dag.NodeID(m.touches[first-1].node)
	v.BeforeName = plan.NodeName(m.g, v.Before)
	v.Stream, v.BeforeStream = m.s.spots[node].stream, m.s.spots[v.Before].stream
	v.Op = m.s.opOf(m.p, dag.NodeID(node))
	v.Problem = fmt.Sprintf("%q and %q share bytes [%d:%d) of device %d, but %q (stream %d) uses the first buffer after %q (stream %d) has used the second",
		v.BufferName, v.OtherName, v.Lo, v.Hi, m.p.Memory[k].Device, v.NodeName, v.Stream, v.BeforeName, v.BeforeStream)
	return v.fix("place %q elsewhere", v.OtherName)
}

// sharedViolation reports two buffers that share bytes while both are alive: node from uses one, node to the other.
func (m *memoryWalk) sharedViolation(a, b, from, to int32) *Violation {
	v := m.overlap(a, b).node(m.g, dag.NodeID(to))
	v.Before, v.BeforeName = dag.NodeID(from), plan.NodeName(m.g, dag.NodeID(from))
	v.Stream, v.BeforeStream = m.s.spots[to].stream, m.s.spots[from].stream
	v.Op = m.s.opOf(m.p, dag.NodeID(to))
	device := m.p.Memory[a].Device
	if from == to {
		v.Problem = fmt.Sprintf("%q and %q share bytes [%d:%d) of device %d, and %q (stream %d) uses both",
			v.BufferName, v.OtherName, v.Lo, v.Hi, device, v.NodeName, v.Stream)
		return v.fix("place %q elsewhere", v.OtherName)
	}
	v.Problem = fmt.Sprintf("%q and %q share bytes [%d:%d) of device %d, but %q (stream %d), which uses the second buffer, is not ordered after %q (stream %d), which uses the first",
		v.BufferName, v.OtherName, v.Lo, v.Hi, device, v.NodeName, v.Stream, v.BeforeName, v.BeforeStream)
	return v.fix("place %q elsewhere, or let stream %d wait before %q for an event recorded on stream %d after %q",
		v.OtherName, v.Stream, v.NodeName, v.BeforeStream, v.BeforeName)
}
