// What the time between the events around a node includes besides the node: from the event before it to its start.

package runtime

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// gapsBefore returns for each node of a plan how long it takes from the event before it to its start. The event after a kernel is recorded when
// the kernel ends, but a download after it begins only when its engine has been told.
func gapsBefore(g *dag.Graph, plan *planner.Plan, m *planner.Machine) []float64 {
	gaps := make([]float64, g.Len())
	for s := range plan.Streams {
		before := dag.NodeID(-1)
		for _, op := range plan.Streams[s].Ops {
			if op.Kind != planner.Launch {
				continue
			}
			gaps[op.Node] = m.GapUS
			if before >= 0 && planner.EngineOf(g, op.Node) == planner.Download && planner.EngineOf(g, before) == planner.Compute {
				gaps[op.Node] = max(m.GapUS, m.EngineUS)
			}
			before = op.Node
		}
	}
	return gaps
}
