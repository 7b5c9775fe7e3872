// The proof of a memory layout: every device buffer inside its arena, and bytes shared only by buffers that are never alive
// together. Shares nothing with the making of layouts.

package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// arenaAlign is what a device's allocator guarantees, and more than any vector load needs.
const arenaAlign = 256

// handover is one placement that must be done with its bytes before another takes them.
type handover struct{ from, to int32 }

// handoverQuestions bounds how many pairs of nodes one walk is asked about: two buffers used on thousands of streams each would
// otherwise take millions at once.
const handoverQuestions = 1 << 22

// checkMemory returns the first fault of a plan's layout.
func checkMemory(g *dag.Graph, p *Plan, s *schedule, clocks clockSource) *Violation {
	ends, v := checkPlacements(g, p)
	if v != nil {
		return v
	}
	if v := checkArena(p, ends); v != nil {
		return v
	}
	shared := sharedPlacements(p)
	if len(shared) == 0 {
		return nil
	}
	kept := keptBuffers(g)
	for _, k := range shared {
		if kept[p.Memory[k].Buffer] {
			return keptViolation(g, p, k)
		}
	}
	u := readUses(g, p, s, shared)
	return u.check(g, p, s, clocks, handovers(p, u.byFirst))
}

// checkPlacements checks each placement by itself and returns where each device's arena ends.
func checkPlacements(g *dag.Graph, p *Plan) (map[int32]int64, *Violation) {
	ends := map[int32]int64{}
	k := 0
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Place != dag.Device {
			continue
		}
		name := bufferName(g, int32(i))
		fault := func(kind error, format string, args ...any) *Violation {
			v := newViolation(kind, format, args...)
			v.Buffer, v.BufferName = int32(i), name
			return v
		}
		if k >= len(p.Memory) || p.Memory[k].Buffer != int32(i) {
			if k < len(p.Memory) && p.Memory[k].Buffer < int32(i) {
				return nil, fault(ErrMemory, "placement %d is of %q, which is not the next device buffer", k, bufferName(g, p.Memory[k].Buffer)).
					fix("list every device buffer once, by id")
			}
			return nil, fault(ErrMemory, "the plan has no place for %q", name).fix("lay the memory out again")
		}
		m := p.Memory[k]
		k++
		switch {
		case m.Device != b.Device || m.Bytes != b.Bytes:
			return nil, fault(ErrOtherGraph, "the plan places %q as %d bytes on device %d, but it has %d bytes on device %d", name, m.Bytes, m.Device, b.Bytes, b.Device).
				fix("plan this graph again")
		case m.Offset < 0 || m.Bytes < 0 || m.Offset > math.MaxInt64-m.Bytes:
			return nil, fault(ErrMemory, "%q is placed at byte %d with %d bytes, outside any arena", name, m.Offset, m.Bytes)
		case m.Offset%arenaAlign != 0:
			return nil, fault(ErrMemory, "%q is placed at byte %d, which is not a multiple of %d", name, m.Offset, arenaAlign)
		}
		ends[m.Device] = max(ends[m.Device], m.Offset+m.Bytes)
	}
	if k < len(p.Memory) {
		return nil, newViolation(ErrOtherGraph, "the plan places %q, which is not a device buffer of the graph, or places it twice", bufferName(g, p.Memory[k].Buffer)).
			fix("plan this graph again")
	}
	return ends, nil
}

// checkArena compares the ends of the arenas with what the plan says it needs; a schedule made by hand may leave that at 0.
func checkArena(p *Plan, ends map[int32]int64) *Violation {
	total := int64(0)
	for _, end := range ends {
		if total > math.MaxInt64-end {
			return newViolation(ErrMemory, "the arenas together need more bytes than can be counted")
		}
		total += end
	}
	if p.Stats.PeakDeviceBytes != 0 && total > p.Stats.PeakDeviceBytes {
		return newViolation(ErrMemory, "the placements need %d bytes, the plan's arenas have %d", total, p.Stats.PeakDeviceBytes).
			fix("lay the memory out again")
	}
	return nil
}

// sharedPlacements returns the placements that have bytes in common with another, in order of device and offset.
func sharedPlacements(p *Plan) []int32 {
	var order []int32
	for k := range p.Memory {
		if p.Memory[k].Bytes > 0 {
			order = append(order, int32(k))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &p.Memory[a], &p.Memory[b]
		return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Offset, y.Offset), cmp.Compare(a, b))
	})
	var shared []int32
	end := int64(0) // of all before, on this device
	for i, k := range order {
		m := &p.Memory[k]
		if i == 0 || p.Memory[order[i-1]].Device != m.Device {
			end = 0
		}
		with := m.Offset < end
		if i+1 < len(order) {
			next := &p.Memory[order[i+1]]
			with = with || next.Device == m.Device && next.Offset < m.Offset+m.Bytes
		}
		if with {
			shared = append(shared, k)
		}
		end = max(end, m.Offset+m.Bytes)
	}
	return shared
}

// keptViolation reports a buffer that shares bytes though it must keep its own.
func keptViolation(g *dag.Graph, p *Plan, k int32) *Violation {
	m := &p.Memory[k]
	for j := range p.Memory {
		o := &p.Memory[j]
		lo, hi := max(m.Offset, o.Offset), min(m.Offset+m.Bytes, o.Offset+o.Bytes)
		if j == int(k) || o.Device != m.Device || lo >= hi {
			continue
		}
		v := newViolation(ErrMemory, "%q must keep its bytes for the whole program, but %q is placed on bytes [%d:%d) of them (device %d)",
			bufferName(g, m.Buffer), bufferName(g, o.Buffer), lo, hi, m.Device)
		v.Buffer, v.BufferName, v.Other, v.OtherName, v.Lo, v.Hi = m.Buffer, bufferName(g, m.Buffer), o.Buffer, bufferName(g, o.Buffer), lo, hi
		return v.fix("place %q elsewhere", v.OtherName)
	}
	return nil
}

// use is the span of one placement's accesses on one stream.
type use struct {
	stream      int32
	first, last int32 // nodes
}

// uses are the accesses of placements that share bytes.
type uses struct {
	start   []int32 // by placement: uses[start[k]:start[k+1]]
	uses    []use
	byFirst []int32 // placements with any access, by their first in submission order
}

// readUses collects where shared placements are accessed.
func readUses(g *dag.Graph, p *Plan, s *schedule, shared []int32) *uses {
	index := make([]int32, len(g.Buffers)) // placement of a shared buffer, plus 1
	for _, k := range shared {
		index[p.Memory[k].Buffer] = k + 1
	}
	// A placement's uses form a list while they are counted; streams are few, so the list is searched.
	head := make([]int32, len(p.Memory))
	type link struct {
		use
		next int32 // plus 1
	}
	var links []link
	u := &uses{start: make([]int32, len(p.Memory)+1)}
	for _, node := range s.order {
		stream := s.spots[node].stream
		for _, a := range g.Accesses(node) {
			k := index[a.Buffer] - 1
			if k < 0 || a.Lo >= a.Hi {
				continue
			}
			at := head[k]
			if at == 0 {
				u.byFirst = append(u.byFirst, k)
			}
			for at > 0 && links[at-1].stream != stream {
				at = links[at-1].next
			}
			if at > 0 {
				links[at-1].last = node
				continue
			}
			links = append(links, link{use{stream, node, node}, head[k]})
			head[k] = int32(len(links))
			u.start[k+1]++
		}
	}
	u.uses = make([]use, 0, len(links))
	for k := range p.Memory {
		u.start[k+1] += u.start[k]
		for at := head[k]; at > 0; at = links[at-1].next {
			u.uses = append(u.uses, links[at-1].use)
		}
	}
	return u
}

func (u *uses) of(placement int32) []use { return u.uses[u.start[placement]:u.start[placement+1]] }

// handovers lists which placement must be done before which may start. Placements take their bytes in the order of their first
// accesses; each is compared with those that had the bytes last, and what holds for these holds for all before.
func handovers(p *Plan, byFirst []int32) []handover {
	var found []handover
	devices := map[int32]*owners{}
	for _, k := range byFirst {
		if devices[p.Memory[k].Device] == nil {
			devices[p.Memory[k].Device] = newOwners(p, byFirst, p.Memory[k].Device)
		}
	}
	seen := make([]int32, len(p.Memory))
	for _, k := range byFirst {
		m := &p.Memory[k]
		devices[m.Device].take(m.Offset, m.Offset+m.Bytes, k, func(before int32) {
			if seen[before] != k+1 {
				seen[before] = k + 1
				found = append(found, handover{before, k})
			}
		})
	}
	return found
}

// check proves each handover: every access of the one buffer before every access of the other.
func (u *uses) check(g *dag.Graph, p *Plan, s *schedule, clocks clockSource, handovers []handover) *Violation {
	var asked []pair
	var of []int32
	flush := func() *Violation {
		if bad := unordered(p, s, clocks, asked); len(bad) > 0 {
			first := bad[0]
			for _, k := range bad {
				if of[k] == of[first] && s.opOf(p, asked[k].to) < s.opOf(p, asked[first].to) {
					first = k
				}
			}
			return sharedViolation(g, p, s, handovers[of[first]], asked[first])
		}
		asked, of = asked[:0], of[:0]
		return nil
	}
	for k, h := range handovers {
		for _, first := range u.of(h.to) {
			for _, last := range u.of(h.from) {
				if first.stream == last.stream && s.spots[last.last].pos < s.spots[first.first].pos {
					continue
				}
				asked = append(asked, pair{last.last, first.first})
				of = append(of, int32(k))
			}
			if len(asked) >= handoverQuestions {
				if v := flush(); v != nil {
					return v
				}
			}
		}
	}
	return flush()
}

// sharedViolation reports two buffers that share bytes while both are alive.
func sharedViolation(g *dag.Graph, p *Plan, s *schedule, h handover, q pair) *Violation {
	a, b := &p.Memory[h.from], &p.Memory[h.to]
	v := newViolation(ErrMemory, "").node(g, q.to)
	v.Before, v.BeforeName = q.from, nodeName(g, q.from)
	v.Stream, v.BeforeStream = s.spots[q.to].stream, s.spots[q.from].stream
	v.Op = s.opOf(p, q.to)
	v.Buffer, v.BufferName = a.Buffer, bufferName(g, a.Buffer)
	v.Other, v.OtherName = b.Buffer, bufferName(g, b.Buffer)
	v.Lo, v.Hi = max(a.Offset, b.Offset), min(a.Offset+a.Bytes, b.Offset+b.Bytes)
	if q.from == q.to {
		v.Problem = fmt.Sprintf("%q and %q share bytes [%d:%d) of device %d, and %q (stream %d) uses both",
			v.BufferName, v.OtherName, v.Lo, v.Hi, a.Device, v.NodeName, v.Stream)
		return v.fix("place %q elsewhere", v.OtherName)
	}
	v.Problem = fmt.Sprintf("%q and %q share bytes [%d:%d) of device %d, but %q (stream %d), which uses the second, is not ordered after %q (stream %d), which uses the first",
		v.BufferName, v.OtherName, v.Lo, v.Hi, a.Device, v.NodeName, v.Stream, v.BeforeName, v.BeforeStream)
	return v.fix("place %q elsewhere, or let stream %d wait before %q for an event recorded on stream %d after %q",
		v.OtherName, v.Stream, v.NodeName, v.BeforeStream, v.BeforeName)
}
