// How many streams of a plan run kernels.

package place

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Computing returns the largest number of streams of one device and priority that run kernels.
func Computing(g *dag.Graph, p *plan.Plan) int {
	type home struct {
		device   int32
		priority dag.Priority
	}
	count, most := map[home]int{}, 0
	for k := range p.Streams {
		s := &p.Streams[k]
		for _, op := range s.Ops {
			if op.Kind == plan.Launch && plan.EngineOf(g, op.Node) == plan.Compute {
				at := home{s.Device, s.Priority}
				count[at]++
				most = max(most, count[at])
				break
			}
		}
	}
	return most
}
