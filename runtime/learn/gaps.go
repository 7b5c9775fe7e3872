// What the time between the events around a node includes besides the node, and which measurements say more than a formula.

package learn

import (
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// resolvedUS is how well events tell the duration of a node on a GPU: against CUPTI, nine in ten of the durations that they give are so close.
const resolvedUS = 2.5

// gapsBefore returns for each node of a plan what the events around it add to its duration. On an H200, CUPTI's records are shorter than the
// time between the events by one gap for copies and two for kernels, and by a change of engines for the first node and where the
// node before ran on another engine: its event is recorded when it ends, but the next engine begins only when it has been told.
func gapsBefore(g *dag.Graph, plan *planner.Plan, m *planner.Machine) []float64 {
	engineOf := func(node dag.NodeID) planner.Engine {
		if e := planner.EngineOf(g, node); e != planner.LocalCopy {
			return e
		}
		return planner.Compute // small copies within a device run like kernels
	}
	gaps := make([]float64, g.Len())
	for s := range plan.Streams {
		before := dag.NodeID(-1)
		for _, op := range plan.Streams[s].Ops {
			if op.Kind != planner.Launch {
				continue
			}
			gap := m.GapUS
			if engineOf(op.Node) == planner.Compute {
				gap += m.GapUS
			}
			if before < 0 || engineOf(before) != engineOf(op.Node) {
				gap += m.EngineUS
			}
			gaps[op.Node], before = gap, op.Node
		}
	}
	return gaps
}

// keepFormulas drops what events measured of nodes whose formula agrees with it as far as events can tell: the formula is more exact then.
func (l *learner) keepFormulas(nodes []dag.NodeID, costs []planner.Cost) {
	if len(costs) != l.graph.Len() {
		return
	}
	for _, i := range nodes {
		samples := l.learned.Samples[i]
		if costs[i].Source == planner.FormulaCost && len(samples) > 0 && math.Abs(engine.Summarize(slices.Clone(samples)).Median-costs[i].US) <= resolvedUS {
			l.learned.Samples[i] = nil
		}
	}
}

// worthRecording reports whether CUPTI should measure nodes: where one has no formula, or there is time for it. Taking CUPTI into a process and
// out again takes 50 ms.
func (l *learner) worthRecording(nodes []dag.NodeID, costs []planner.Cost) bool {
	return l.o.Thorough || len(costs) != l.graph.Len() || slices.ContainsFunc(nodes, func(i dag.NodeID) bool { return costs[i].Source == planner.UnknownCost })
}
