// Lower bounds: times that no plan of a graph on a machine can beat.

package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/shop"
	"github.com/dagrun/dagrun/planner/plan"
)

// load is a set of nodes that run one at a time: their work, and the least time before the first and after the last.
type load struct {
	work, head, tail float64
	nodes            int
}

func (l *load) add(work, head, tail float64) {
	if l.nodes == 0 {
		l.head, l.tail = head, tail
	}
	l.nodes++
	l.work += work
	l.head = min(l.head, head)
	l.tail = min(l.tail, tail)
}

func LowerBoundWith(g *dag.Graph, m *Machine, durations []float64, streams int, graph bool) Bound {
	n := g.Len()
	m = m.orDefault()
	if n == 0 || checkTimes(g, m, durations) != nil {
		return Bound{}
	}
	if streams <= 0 {
		streams = DefaultStreams
	}
	gap := m.GapUS
	if graph {
		gap = m.GraphNodeUS
	}
	if m.Unit {
		gap = 0
	}
	launch := func(node dag.NodeID) float64 {
		if graph || m.Unit {
			return 0
		}
		return m.submits(g, node)
	}
	// Between nodes on different engines there is more, unless a node runs between them.
	change := max(gap, min(m.EngineUS, 2*gap+slices.Min(durations)))
	if m.Unit {
		change = 0
	}
	between := func(before, after dag.NodeID) float64 {
		if change > gap && changesEngine(plan.EngineOf(g, before), plan.EngineOf(g, after)) {
			return change
		}
		return gap
	}
	// head is the earliest start of a node: after its predecessors, and after the host has submitted it and a chain of them. tail is
	// the least time from its end to the end of the run.
	order := g.Sequence()
	preds := g.Preds
	if g.Sync == dag.SyncExplicit {
		order = g.Topological()
		preds = func(i dag.NodeID) []dag.NodeID { return g.Nodes[i].After }
	}
	joined := len(order) > n
	vertices := len(order)
	head, tail := make([]float64, vertices), make([]float64, vertices)
	submitted := make([]float64, vertices) // by the host, at the earliest
	host := 0.0
	var b Bound
	for _, i := range order {
		for _, q := range preds(i) {
			if g.IsJoin(q) { // a join takes no time and does not count as a step of a chain
				head[i], submitted[i] = max(head[i], head[q]), max(submitted[i], submitted[q])
				continue
			}
			step := gap
			if !g.IsJoin(i) {
				step = between(q, i)
			}
			head[i] = max(head[i], head[q]+durations[q]+step)
			submitted[i] = max(submitted[i], submitted[q])
		}
		if !g.IsJoin(i) {
			us := launch(i)
			submitted[i] += us
			host += us
			head[i] = max(head[i], submitted[i])
			b.CriticalPathUS = max(b.CriticalPathUS, head[i]+durations[i])
		}
	}
	shortest := math.Inf(1)
	for _, i := range slices.Backward(order) {
		rest := tail[i]
		if !g.IsJoin(i) {
			shortest = min(shortest, durations[i]+tail[i])
			rest = durations[i] + tail[i]
		}
		for _, q := range preds(i) {
			switch {
			case g.IsJoin(i):
				tail[q] = max(tail[q], rest)
			case g.IsJoin(q):
				tail[q] = max(tail[q], gap+rest)
			default:
				tail[q] = max(tail[q], between(q, i)+rest)
			}
		}
	}
	b.HostUS = host + shortest

	devices := int32(0)
	for i := range g.Nodes {
		devices = max(devices, g.Nodes[i].Device+1)
	}
	engines := make([]load, int(devices)*int(plan.EngineKinds))
	kernels := make([]load, devices)
	numbered := make(map[[2]int32]bool)
	extra := make([]int, devices)
	unbound := make([][3]bool, devices) // by device and priority: has nodes without a number
	for i := range g.Nodes {
		node := &g.Nodes[i]
		engine, d := plan.EngineOf(g, dag.NodeID(i)), max(0, node.Device)
		work := durations[i]
		switch engine {
		case plan.Compute:
			kernels[d].add(work, head[i], tail[i])
			if stream := node.Stream.Number(); stream < 0 {
				unbound[d][1+min(1, max(-1, node.Priority))] = true
			} else if key := [2]int32{d, stream}; !numbered[key] {
				numbered[key] = true
				extra[d]++
			}
			work = float64(work * m.shareOf(node, durations[i]))
		case plan.Upload, plan.Download:
			work /= float64(max(1, m.CopyEngines))
		case plan.HostCopy:
			d = 0
		}
		if m.Cores > 0 { // copies and kernels of all devices share the cores
			engine, d, work = plan.Compute, 0, float64(durations[i]*m.shareOf(node, durations[i]))
		}
		if work > 0 {
			engines[d*int32(plan.EngineKinds)+int32(engine)].add(work, head[i], tail[i])
		}
	}
	for e := range engines {
		if l := &engines[e]; !m.Unit && l.nodes > 0 && l.head+l.work+l.tail > b.EngineUS {
			b.EngineUS = l.head + l.work + l.tail
			b.Engine, b.Device = plan.Engine(e%int(plan.EngineKinds)), int32(e/int(plan.EngineKinds))
		}
	}
	count := make([]int, devices)
	for d := range kernels {
		l := &kernels[d]
		if l.nodes == 0 {
			continue
		}
		count[d] = extra[d]
		for _, used := range unbound[d] {
			if used {
				count[d] += streams
			}
		}
		// There is a gap between consecutive nodes of a stream, so the streams have at least this many gaps in total.
		gaps := float64(float64(max(0, l.nodes-count[d])) * gap)
		b.StreamsUS = max(b.StreamsUS, l.head+(l.work+gaps)/float64(count[d])+l.tail)
	}
	if joined {
		return b
	}
	b.boundEngines(g, m, durations, preds, shop.Ways{Head: head, Tail: tail}, count)
	return b
}

// changesEngine reports whether two nodes run on different engines, of which at least one copies from or to the host.
func changesEngine(before, after plan.Engine) bool {
	host := func(e plan.Engine) bool { return e == plan.Upload || e == plan.Download }
	return before != after && (host(before) || host(after))
}

// checkTimes returns an error for input from which no times can be computed.
func checkTimes(g *dag.Graph, m *Machine, durations []float64) error {
	if err := g.Check(); err != nil {
		return err
	}
	if err := m.inRange(); err != nil {
		return err
	}
	if len(durations) != g.Len() {
		return fmt.Errorf("there are %d durations for %d nodes", len(durations), g.Len())
	}
	for i, us := range durations {
		if !(us >= 0 && us <= maxDurationUS) {
			return fmt.Errorf("node %q takes %v us: it must be from 0 to %g", plan.NodeName(g, dag.NodeID(i)), us, maxDurationUS)
		}
	}
	return nil
}
