// The peak of a plan: the buffers that are alive together where it needs the most device memory.

package layout

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/plan"
)

// antichainLimit is the most buffers for which the heaviest set is found exactly. For more, the busiest place of the order is taken.
const antichainLimit = 400

// PeakBuffers returns the peak of each device with buffers. The plan's ops must be valid (proof.CheckOps).
func PeakBuffers(g *dag.Graph, p *plan.Plan, kept []bool) ([]plan.Peak, error) {
	s := readSteps(g, p)
	devices, _, err := arenaSizes(g)
	if err != nil {
		return nil, err
	}
	used := usedBuffers(g)
	arenas := ArenaEnds(p)
	var peaks []plan.Peak
	for _, device := range devices {
		peak := plan.Peak{Device: device, Arena: arenas[device], Node: -1}
		var sharing []int32
		for i := range g.Buffers {
			b := &g.Buffers[i]
			switch {
			case !b.InArena() || b.Device != device:
			case kept[i]:
				peak.Live += addBuffer(&peak, g, dag.BufferID(i), true)
			case used[i]:
				sharing = append(sharing, int32(i))
			}
		}
		if len(sharing) > 0 {
			l := readLifetimes(s, sharing, order.Entries)
			start := int32(-1)
			for _, k := range l.heaviest(s.len()) {
				peak.Live += addBuffer(&peak, g, dag.BufferID(sharing[k]), false)
				start = max(start, l.first[k])
			}
			peak.Node = s.nodeOf(s.order.Order[start])
		}
		sortBuffers(&peak)
		peaks = append(peaks, peak)
	}
	return peaks, nil
}

// addBuffer lists a buffer and returns the bytes that it takes.
func addBuffer(p *plan.Peak, g *dag.Graph, buffer dag.BufferID, kept bool) int64 {
	bytes := g.Buffers[buffer].Bytes
	p.Buffers = append(p.Buffers, plan.LiveBuffer{Buffer: buffer, Name: plan.BufferName(g, buffer), Bytes: bytes, Kept: kept})
	return plan.AlignUp(bytes)
}

func sortBuffers(p *plan.Peak) {
	slices.SortFunc(p.Buffers, func(a, b plan.LiveBuffer) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Buffer, b.Buffer))
	})
}

// heaviest returns a set of buffers that are alive together: the heaviest, if there are few enough buffers to find it.
func (l *lifetimes) heaviest(nodes int) []int32 {
	if len(l.buffers) <= antichainLimit {
		return heaviestAntichain(l)
	}
	_, at := l.busiest(nodes)
	var set []int32
	for k := range l.buffers {
		if l.first[k] <= at && at <= l.last[k] {
			set = append(set, int32(k))
		}
	}
	return set
}

// ArenaEnds is where each device's arena ends.
func ArenaEnds(p *plan.Plan) map[int32]int64 {
	ends := map[int32]int64{}
	for _, m := range p.Memory {
		ends[m.Device] = max(ends[m.Device], m.Offset+plan.AlignUp(m.Bytes))
	}
	return ends
}
