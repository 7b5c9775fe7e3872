// Flows: which node reads what which node wrote. They do not depend on the placement, so they are found once.

package placement

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// datum is bytes that one node wrote, or that a replay began with, and others read together.
type datum struct {
	writer int32 // -1: what the replay began with
	buffer dag.BufferID
	lo, hi int64 // places in the buffer's space
	bytes  int64
}

// span is a range of bytes with its last writer, or -1.
type span struct {
	lo, hi int64
	writer int32
}

// flows are the data of a graph.
type flows struct {
	data  []datum
	start []int32 // by node: its reads are reads[start[i]:start[i+1]], ids of data
	reads []int32
	final []datum // what the last replay must leave at home, by its writers
	used  []use   // of buffers that need a home: how many bytes nodes use; device is the node
	carry []int32 // by datum that a pass of a loop begins with: the node that wrote it in the pass before; -1 if none did or several
	lead  []int32 // by node: the node whose device it takes, because it only brings or fetches data; -1: none
}

// findFlows follows all contents once.
func findFlows(p *Problem) *flows {
	g := p.Graph
	f := &flows{start: make([]int32, 1, g.Len()+1), lead: slices.Repeat([]int32{-1}, g.Len())}
	last := make([][]span, len(g.Buffers))
	for k := range g.Buffers {
		last[k] = []span{{0, p.spaces[k].size(g.Buffers[k].Bytes), -1}}
	}
	ids := map[datum]int32{}
	var list []interval
	for i := range g.Nodes {
		accesses := g.Accesses(dag.NodeID(i))
		for _, a := range accesses {
			b := a.Buffer
			if p.stays[b] {
				continue
			}
			if p.written[b] && (p.early[b] || p.keep[b]) {
				f.used = append(f.used, use{b, int32(i), 0, a.Range.Bytes()})
			}
			if a.Mode&dag.Read == 0 {
				continue
			}
			list = p.spaces[b].of(a.Range, list[:0])
			for _, x := range list {
				f.read(p, ids, b, last[b], x)
			}
		}
		f.start = append(f.start, int32(len(f.reads)))
		for _, a := range accesses {
			if a.Mode&dag.Write != 0 && !p.stays[a.Buffer] {
				list = p.spaces[a.Buffer].of(a.Range, list[:0])
				for _, x := range list {
					last[a.Buffer] = overwrite(last[a.Buffer], span{x.lo, x.hi, int32(i)})
				}
			}
		}
	}
	f.follow(p)
	if p.around {
		f.carried(last)
		return f
	}
	for k := range last {
		if b := dag.BufferID(k); !p.stays[b] && p.written[b] && (p.early[b] || p.keep[b]) {
			for _, s := range last[k] {
				if s.writer >= 0 {
					f.final = append(f.final, datum{s.writer, b, s.lo, s.hi, p.spaces[b].bytes(interval{s.lo, s.hi})})
				}
			}
		}
	}
	return f
}

// carried finds who wrote what a pass begins with. It stays where it was written.
func (f *flows) carried(last [][]span) {
	f.carry = make([]int32, len(f.data))
	for id := range f.data {
		x := &f.data[id]
		f.carry[id] = -1
		if x.writer >= 0 {
			continue
		}
		if s := last[x.buffer][spanAt(last[x.buffer], x.lo)]; s.hi >= x.hi {
			f.carry[id] = s.writer
		}
	}
}

// from is where a datum that a replay or pass begins with is.
func (f *flows) from(id int32, homes, at []int32) int32 {
	if f.carry != nil && f.carry[id] >= 0 {
		return at[f.carry[id]]
	}
	return homes[f.data[id].buffer]
}

// read notes the data of an interval that a node reads. Neighbours by one writer in several bands stay apart.
func (f *flows) read(p *Problem, ids map[datum]int32, b dag.BufferID, last []span, x interval) {
	if p.constant(b) {
		return
	}
	for _, s := range last[spanAt(last, x.lo):] {
		if s.lo >= x.hi {
			return
		}
		d := datum{writer: s.writer, buffer: b, lo: max(s.lo, x.lo), hi: min(s.hi, x.hi)}
		d.bytes = p.spaces[b].bytes(interval{d.lo, d.hi})
		id, known := ids[d]
		if !known {
			id = int32(len(f.data))
			ids[d] = id
			f.data = append(f.data, d)
		}
		f.reads = append(f.reads, id)
	}
}

// follow finds the nodes that need no device of their own: a download happens where the data is, an upload or a fill where it is first used.
func (f *flows) follow(p *Problem) {
	g := p.Graph
	for i := range g.Nodes {
		if p.unit[i] != Free {
			continue
		}
		switch e := plan.EngineOf(g, dag.NodeID(i)); {
		case e == plan.Download:
			for _, id := range f.reads[f.start[i]:f.start[i+1]] {
				if w := f.data[id].writer; w >= 0 {
					f.lead[i] = w
				}
			}
		case e == plan.Upload || g.Nodes[i].Set != nil:
			f.lead[i] = -2
		}
	}
	for i := range g.Nodes { // the first reader
		for _, id := range f.reads[f.start[i]:f.start[i+1]] {
			if w := f.data[id].writer; w >= 0 && f.lead[w] == -2 {
				f.lead[w] = int32(i)
			}
		}
	}
	for i := range f.lead {
		f.lead[i] = max(f.lead[i], -1)
	}
}

// settle gives the nodes that follow others their devices.
func (f *flows) settle(at []int32) {
	for i := len(at) - 1; i >= 0; i-- { // what brings data, the last first: it may feed a node that follows too
		if l := f.lead[i]; l > int32(i) {
			at[i] = at[l]
		}
	}
	for i := range at {
		if l := f.lead[i]; l >= 0 && l < int32(i) {
			at[i] = at[l]
		}
	}
}

func spanAt(list []span, at int64) int {
	lo, hi := 0, len(list)
	for lo < hi {
		if mid := (lo + hi) / 2; list[mid].hi > at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// overwrite puts a span into a list of spans without gaps.
func overwrite(list []span, s span) []span {
	first := spanAt(list, s.lo)
	end := first
	var parts [3]span
	n := 0
	if list[first].lo < s.lo {
		parts[n] = span{list[first].lo, s.lo, list[first].writer}
		n++
	}
	parts[n] = s
	n++
	for end < len(list) && list[end].lo < s.hi {
		if list[end].hi > s.hi {
			parts[n] = span{s.hi, list[end].hi, list[end].writer}
			n++
		}
		end++
	}
	return slices.Replace(list, first, end, parts[:n]...)
}

// shares returns which part of its device each node takes.
func shares(g *dag.Graph, m *model.Machine) []float64 {
	list := make([]float64, g.Len())
	for i := range list {
		if plan.EngineOf(g, dag.NodeID(i)) != plan.Compute || m.Unit {
			continue
		}
		if list[i] = m.Share(&g.Nodes[i]); list[i] == 0 {
			list[i] = 1
		}
	}
	return list
}
