// Memory figures of a program, in total and per buffer.

package engine

import (
	"github.com/dagrun/dagrun/planner/plan"
)

// MemoryStats holds how much memory a program takes.
type MemoryStats struct {
	Planned   int64          `json:"planned_bytes"`  // device bytes of one replay's buffers as laid out, all devices
	Buffers   int64          `json:"buffer_bytes"`   // the same if no two buffers shared bytes
	Reserved  int64          `json:"reserved_bytes"` // allocated device bytes: every replay in flight has its own
	Host      int64          `json:"host_bytes"`     // allocated pinned and pageable bytes
	Instances int            `json:"inflight"`
	PerBuffer []BufferMemory `json:"buffers"`
}

// BufferMemory tells where a device buffer lies and when it is alive in a replay.
type BufferMemory struct {
	Name   string `json:"name"`
	Device int32  `json:"device"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	First  string `json:"first_node"` // the first node, in submission order, that touches it; "" for none
	Last   string `json:"last_node"`
	Shares bool   `json:"shares_bytes"` // another buffer uses the same bytes at another time
}

// Memory returns the figures of a program.
func (p *Program) Memory() MemoryStats {
	if p == nil || p.plan == nil {
		return MemoryStats{}
	}
	m := MemoryStats{Buffers: p.plan.Stats.SumDeviceBytes, Instances: len(p.instances)}
	for _, bytes := range DeviceBytes(p.graph, p.plan, p.options.Memory) {
		m.Planned += bytes
	}
	for _, in := range p.instances {
		m.Reserved += in.memory.device
		m.Host += in.memory.host
	}
	first, last := p.lives()
	for _, placed := range p.plan.Memory {
		b := BufferMemory{Name: p.graph.Buffers[placed.Buffer].Name, Device: placed.Device, Offset: placed.Offset, Bytes: p.graph.Buffers[placed.Buffer].Bytes}
		if first[placed.Buffer] >= 0 {
			b.First, b.Last = p.graph.Nodes[first[placed.Buffer]].Name, p.graph.Nodes[last[placed.Buffer]].Name
		}
		_, b.Shares = p.sharesBytes(placed.Buffer)
		m.PerBuffer = append(m.PerBuffer, b)
	}
	return m
}

// lives returns by buffer the first and last node that touch it, in submission order, -1 for none.
func (p *Program) lives() (first, last []int32) {
	first, last = make([]int32, len(p.graph.Buffers)), make([]int32, len(p.graph.Buffers))
	for i := range first {
		first[i], last[i] = -1, -1
	}
	next := make([]int32, len(p.plan.Streams))
	for _, s := range p.plan.Order {
		op := p.plan.Streams[s].Ops[next[s]]
		next[s]++
		if op.Kind != plan.Launch {
			continue
		}
		for _, a := range p.graph.Accesses(op.Node) {
			if !p.graph.Buffers[a.Buffer].InArena() {
				continue
			}
			if first[a.Buffer] < 0 {
				first[a.Buffer] = int32(op.Node)
			}
			last[a.Buffer] = int32(op.Node)
		}
	}
	return first, last
}
