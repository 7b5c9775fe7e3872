// The proof of memory within loops and branches: which buffers share bytes inside of one body, and that they are not alive together there.

package proof

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// within returns the part of a layout that may share bytes inside of the bodies of one node.
func within(node dag.NodeID, alone []dag.NodeID, memory []plan.Placement) []plan.Placement {
	var part []plan.Placement
	for _, m := range memory {
		if alone[m.Buffer] == node {
			part = append(part, m)
		}
	}
	return part
}

// bodyMemory checks the buffers of a layout that one body uses, against the order in which a pass of it uses them.
func bodyMemory(g *dag.Graph, p *plan.Plan, s *schedule, clocks clockSource, memory []plan.Placement) *Violation {
	used := make([]bool, len(g.Buffers))
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			used[a.Buffer] = used[a.Buffer] || a.Lo < a.Hi
		}
	}
	inside := *p
	inside.Memory = nil
	for _, m := range memory {
		if used[m.Buffer] {
			inside.Memory = append(inside.Memory, m)
		}
	}
	return checkShared(g, &inside, s, clocks, make([]bool, len(g.Buffers)))
}

// carriedApart checks that a buffer of a layout that a pass of a loop may leave as the pass before left it shares bytes with no other. What a
// pass reads before it has certainly written it, the node around it reads too: the plan must keep that, which checkKept has found.
func carriedApart(g *dag.Graph, id dag.NodeID, memory []plan.Placement) *Violation {
	if g.Nodes[id].Kind != dag.Repeat || !anyShared(&plan.Plan{Memory: memory}) {
		return nil
	}
	pass := graphCertainty(g.Nodes[id].Control.Bodies[0])
	unsure := pass.may.without(&pass.must)
	for k := range memory {
		m := &memory[k]
		if g.Buffers[m.Buffer].Scratch || m.Bytes == 0 || !unsure.has(m.Buffer) {
			continue
		}
		for other := range memory {
			o := &memory[other]
			if other == k || o.Device != m.Device || o.Bytes == 0 || o.Offset >= m.Offset+m.Bytes || m.Offset >= o.Offset+o.Bytes {
				continue
			}
			v := newViolation(plan.ErrMemory, "").node(g, id)
			v.Buffer, v.BufferName = m.Buffer, plan.BufferName(g, m.Buffer)
			v.Other, v.OtherName = o.Buffer, plan.BufferName(g, o.Buffer)
			v.Lo, v.Hi = max(m.Offset, o.Offset), min(m.Offset+m.Bytes, o.Offset+o.Bytes)
			v.Problem = fmt.Sprintf("%q must keep its bytes during all passes of %q, because a pass may leave it unwritten, but %q is also placed on bytes [%d:%d) of device %d",
				v.BufferName, plan.NodeName(g, id), v.OtherName, v.Lo, v.Hi, m.Device)
			return v.fix("place %q elsewhere", v.OtherName)
		}
	}
	return nil
}
