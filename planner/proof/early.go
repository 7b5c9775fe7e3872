// The proof of launches that begin before the launch before them has ended: what follows a launch on its stream, or depends on nothing else in a
// graph, and waits in its own code.

package proof

import (
	"errors"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// ErrEarly: a launch may begin too early.
var ErrEarly = errors.New("launch that begins too early")

// VerifyEarly proves that launches may begin before the one before them has ended, or returns the first fault as a *Violation. waits
// tells of which nodes the code that was loaded first waits until the launches before it have ended. With edges, the launches are nodes of a graph
// with these edges, and each may begin when the only node that it depends on lets it; without, each may begin when the launch just before it
// on its stream of the plan lets it.
//
// Such a launch waits before it accesses anything. So its accesses come after the end of the launch before it, as does its own end:
// everything that is ordered after it stays ordered after both.
func VerifyEarly(g *dag.Graph, p *plan.Plan, edges []plan.GraphEdge, early []dag.NodeID, waits func(dag.NodeID) bool) error {
	s, v := readSchedule(g, p)
	if v != nil {
		return v
	}
	before := make([]dag.NodeID, g.Len()) // the launch that a launch may begin before the end of; -1 for none
	for i := range before {
		before[i] = -1
	}
	if edges == nil {
		for _, stream := range p.Streams {
			for k := 1; k < len(stream.Ops); k++ {
				if stream.Ops[k].Kind == plan.Launch && stream.Ops[k-1].Kind == plan.Launch {
					before[stream.Ops[k].Node] = stream.Ops[k-1].Node
				}
			}
		}
	} else {
		a, v := edgeAncestry(g, p, s, edges)
		if v != nil {
			return v
		}
		for k, node := range s.order {
			if from := a.from[a.start[k]:a.start[k+1]]; len(from) == 1 {
				before[node] = dag.NodeID(from[0])
			}
		}
		for _, e := range edges {
			if e.From == plan.GraphRoot {
				before[e.To] = -1
			}
		}
	}
	for _, node := range early {
		if node < 0 || int(node) >= g.Len() {
			return newViolation(plan.ErrOtherGraph, "node %d begins early, but the graph has %d nodes", node, g.Len())
		}
		name := plan.NodeName(g, node)
		fault := func(format string, args ...any) *Violation {
			v := newViolation(ErrEarly, format, args...).node(g, node)
			v.Stream = s.spots[node].stream
			return v.fix("launch %q when all before it has ended", name)
		}
		from := before[node]
		switch {
		case !launches(&g.Nodes[node]):
			return fault("%q begins early, but it is not a kernel", name)
		case from < 0 && edges == nil:
			return fault("%q begins early, but no launch comes just before it on its stream", name)
		case from < 0:
			return fault("%q begins early, but it does not depend on one other node alone", name)
		case !launches(&g.Nodes[from]):
			return fault("%q begins before the end of %q, which is not a kernel", name, plan.NodeName(g, from))
		case waits == nil || !waits(node):
			return fault("%q begins before the end of %q, but its code does not first wait for that", name, plan.NodeName(g, from))
		}
	}
	return nil
}

func launches(n *dag.Node) bool { return n.Kind == dag.Kernel || n.Kind == dag.Map }
