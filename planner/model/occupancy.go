// Device memory during a predicted run: how many bytes are alive when.

package model

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Occupancy is the use of the memory of one device during a timeline.
type Occupancy struct {
	Device int32
	Arena  int64 // bytes that the plan's layout takes
	Kept   int64 // bytes of buffers that are alive all the time
	Steps  []OccupancyStep
}

// OccupancyStep is a change in memory use: from US on, Bytes are alive, including those kept.
type OccupancyStep struct {
	US    float64
	Bytes int64
}

// OccupancyOf returns the memory use of a predicted run, one entry for each device with buffers, by device.
// A buffer is alive from the start of the first node that accesses it to the end of the last; one that the plan
// keeps is alive all the time. Bytes are rounded up to multiples of 256, as in the layout. Bytes that buffers of one loop or branch share
// count once.
func OccupancyOf(g *dag.Graph, p *plan.Plan, t *plan.Timeline) []Occupancy {
	if g.Check() != nil || p == nil || t == nil || !placesKnown(p, len(g.Buffers)) {
		return nil
	}
	first, last := make([]float64, len(g.Buffers)), make([]float64, len(g.Buffers))
	user := make([]dag.NodeID, len(g.Buffers)) // the node that uses it, or -1 for several
	touched := make([]bool, len(g.Buffers))
	for i := range t.Nodes {
		span := &t.Nodes[i]
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if !touched[a.Buffer] {
				touched[a.Buffer] = true
				first[a.Buffer], last[a.Buffer], user[a.Buffer] = span.Start, span.End, dag.NodeID(i)
			}
			if user[a.Buffer] != dag.NodeID(i) {
				user[a.Buffer] = -1
			}
			first[a.Buffer], last[a.Buffer] = min(first[a.Buffer], span.Start), max(last[a.Buffer], span.End)
		}
	}
	kept := make([]bool, len(g.Buffers))
	for _, b := range p.Kept {
		kept[b] = true
	}
	placed := slices.Clone(p.Memory)
	slices.SortStableFunc(placed, func(a, b plan.Placement) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Offset, b.Offset))
	})
	counted := make([]int64, g.Len()) // by loop or branch, up to where its own buffers were counted
	var all []Occupancy
	for len(placed) > 0 {
		o := Occupancy{Device: placed[0].Device}
		var steps []OccupancyStep // differences, summed up below
		for len(placed) > 0 && placed[0].Device == o.Device {
			m := placed[0]
			placed = placed[1:]
			bytes := plan.AlignUp(m.Bytes)
			o.Arena = max(o.Arena, m.Offset+bytes)
			if at := user[m.Buffer]; touched[m.Buffer] && at >= 0 && g.Nodes[at].Control != nil && !kept[m.Buffer] {
				end := m.Offset + bytes
				bytes = max(0, end-max(m.Offset, counted[at]))
				counted[at] = max(counted[at], end)
			}
			switch {
			case kept[m.Buffer]:
				o.Kept += bytes
			case touched[m.Buffer] && bytes > 0:
				steps = append(steps, OccupancyStep{first[m.Buffer], bytes}, OccupancyStep{last[m.Buffer], -bytes})
			}
		}
		// At the same time, ends come before starts: the two buffers may share bytes.
		slices.SortFunc(steps, func(a, b OccupancyStep) int { return cmp.Or(cmp.Compare(a.US, b.US), cmp.Compare(a.Bytes, b.Bytes)) })
		alive := o.Kept
		o.Steps = append(o.Steps, OccupancyStep{0, alive})
		for _, s := range steps {
			alive += s.Bytes
			if end := len(o.Steps) - 1; o.Steps[end].US == s.US {
				o.Steps[end].Bytes = alive
				continue
			}
			o.Steps = append(o.Steps, OccupancyStep{s.US, alive})
		}
		all = append(all, o)
	}
	return all
}

// placesKnown reports whether all buffer ids in a plan are less than a number of buffers.
func placesKnown(p *plan.Plan, buffers int) bool {
	known := func(b dag.BufferID) bool { return b >= 0 && int(b) < buffers }
	for _, m := range p.Memory {
		if !known(m.Buffer) {
			return false
		}
	}
	for _, b := range p.Kept {
		if !known(b) {
			return false
		}
	}
	return true
}
