// How long nodes take, loops and branches among them, and the lower bounds and costs that follow.

package model

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// control estimates a loop or branch: each pass takes what no plan of the body on the usual number of streams can beat, and each test
// takes a kernel. A loop counts with the passes that it made last time, or else the most that it may make, a branch with the longer body.
func (m *Machine) control(n *dag.Node, p *Profile) float64 {
	c := n.Control
	longest := 0.0
	for _, body := range c.Bodies {
		longest = max(longest, LowerBoundWith(body, m, Durations(body, m, p), DefaultStreams, false).US())
	}
	test := m.KernelUS
	if m.Unit {
		test = 0
	} else if divided(n) {
		test, longest = m.hostTest(n, longest)
	}
	if n.Kind == dag.Branch {
		return longest + test
	}
	times := c.Times
	if known := p.passes(n); known.Source != plan.NoPasses {
		times = known.Count
	}
	us := float64(times) * longest
	if c.Condition != nil {
		us += float64((times+c.Every-1)/max(c.Every, 1)) * test
	}
	return us
}

// divided reports whether the nodes of a loop or branch are on several devices, so that no graph can hold it.
func divided(n *dag.Node) bool {
	for _, body := range n.Control.Bodies {
		for i := range body.Nodes {
			inner := &body.Nodes[i]
			if inner.Device != n.Device || inner.Control != nil && divided(inner) {
				return true
			}
		}
	}
	return false
}

// hostTest estimates a test by the host, which copies what the condition reads, waits for that, and only then submits the next pass. A pass takes
// at least as long as submitting it.
func (m *Machine) hostTest(n *dag.Node, pass float64) (test, longest float64) {
	for _, body := range n.Control.Bodies {
		pass = max(pass, float64(body.Len())*m.LaunchUS)
	}
	return m.CopyUS + m.GapUS + 2*m.LaunchUS, pass
}

// Durations returns the times of Costs.
func Durations(g *dag.Graph, m *Machine, p *Profile) []float64 {
	if g.Check() != nil {
		return nil
	}
	m = m.orDefault()
	times := make([]float64, g.Len())
	for i := range times {
		node := &g.Nodes[i]
		us, known := p.of(node)
		if !known && node.HasCost {
			us, known = node.CostUS, true
		}
		if !known && node.Control != nil {
			us, known = m.control(node, p), true
		}
		if !known {
			us = m.model(g, int32(i))
		}
		if !(us > 0) {
			us = 0
		}
		times[i] = min(us, maxDurationUS)
	}
	return times
}

// Costs returns how many microseconds each node takes on its engine when nothing else runs, and where that comes from: its time in the
// profile, else its declared cost, else an estimate from its bytes and operations and the rates of the machine, which is 1 on the unit
// machine. There is no formula for tasks and for kernels of the user: a default is returned for them. The profile may be nil.
func Costs(g *dag.Graph, m *Machine, p *Profile) []plan.Cost {
	if g.Check() != nil {
		return nil
	}
	return CostsOf(g, m, p, Durations(g, m, p))
}

// LowerBound returns a time that no plan with that many compute streams per device (0: 8) can beat in Simulate. Nodes of different
// priority never share a stream, and each stream number set by the user is a stream of its own. So a device counts as having that many
// streams for each priority with unnumbered nodes, plus one for each number. Under sync: explicit, only after: counts as a dependency.
func LowerBound(g *dag.Graph, m *Machine, p *Profile, streams int) Bound {
	return LowerBoundWith(g, m.With(p), Durations(g, m, p), streams, false)
}

// LowerBoundGraph is LowerBound for SimulateGraph.
func LowerBoundGraph(g *dag.Graph, m *Machine, p *Profile, streams int) Bound {
	return LowerBoundWith(g, m.With(p), Durations(g, m, p), streams, true)
}
