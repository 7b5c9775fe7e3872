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

// LiveBuffer is a buffer that is alive at a peak.
type LiveBuffer struct {
	Buffer dag.BufferID
	Name   string
	Bytes  int64
	Kept   bool // shares its bytes with no other buffer for the whole program
}

// Peak is where a plan needs the most memory of one device.
type Peak struct {
	Device  int32
	Arena   int64      // bytes that the plan's layout takes
	Live    int64      // bytes of Buffers, each rounded up to 256: no layout of this plan takes less
	Node    dag.NodeID // the node at which the last of them comes alive; -1 if all are kept
	Buffers []LiveBuffer
}

// PeakBuffers returns the peak of each device with buffers. The plan's ops must be valid (proof.CheckOps).
func PeakBuffers(g *dag.Graph, p *plan.Plan, kept []bool) ([]Peak, error) {
	s := readSteps(g, p)
	devices, _, err := arenaSizes(g)
	if err != nil {
		return nil, err
	}
	used := usedBuffers(g)
	arenas := ArenaEnds(p)
	var peaks []Peak
	for _, device := range devices {
		peak := Peak{Device: device, Arena: arenas[device], Node: -1}
		var sharing []int32
		for i := range g.Buffers {
			b := &g.Buffers[i]
			switch {
			case !b.InArena() || b.Device != device:
			case kept[i]:
				peak.Live += peak.add(g, dag.BufferID(i), true)
			case used[i] && b.Bytes > 0:
				sharing = append(sharing, int32(i))
			}
		}
		if len(sharing) > 0 {
			l := readLifetimes(s, sharing, order.Entries)
			start := int32(-1)
			for _, k := range l.heaviest(s.len()) {
				peak.Live += peak.add(g, dag.BufferID(sharing[k]), false)
				start = max(start, l.first[k])
			}
			peak.Node = s.nodeOf(s.order.Order[start])
		}
		peak.sort()
		peaks = append(peaks, peak)
	}
	return peaks, nil
}

// add lists a buffer and returns the bytes that it takes.
func (p *Peak) add(g *dag.Graph, buffer dag.BufferID, kept bool) int64 {
	bytes := g.Buffers[buffer].Bytes
	p.Buffers = append(p.Buffers, LiveBuffer{buffer, plan.BufferName(g, buffer), bytes, kept})
	return plan.AlignUp(bytes)
}

func (p *Peak) sort() {
	slices.SortFunc(p.Buffers, func(a, b LiveBuffer) int {
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
