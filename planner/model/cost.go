// The cost model: which engine a node runs on, how long it takes there alone, and what fraction of a device it fills.

package model

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Profile holds measured durations by node name. Nodes that are not in it are estimated from the rates of the machine.
type Profile struct {
	Machine string
	Nodes   map[string]float64 // microseconds
	// Passes are how many passes loops with a condition make; those that are not in it count with as many as they may make. They are not
	// part of a profile's file, which has the times of loops.
	Passes map[string]int64
	// Shares are fractions of its device that a node takes while it runs alone, where that was measured. They count only on a machine with
	// cores; elsewhere the fraction follows from the blocks of a kernel.
	Shares map[string]float64
	// Spreads are the standard deviations of the measurements of which Nodes holds the medians, in microseconds, where there were several.
	// They are for people, and planned with by nobody.
	Spreads map[string]float64
}

// The driver runs a memset as a kernel with 16 bytes per thread.
const (
	setBytesPerBlock = 16 * setThreads
	setThreads       = 256
	usualThreads     = 256 // per block, if the size is not known yet
	setLaunch        = 0.6 // of what the host takes to submit a copy, on an H200: 0.8 us against 1.3
	maxDurationUS    = 1e15
)

// CostsOf adds to durations, which must be those of [Durations] for the same arguments, where each comes from.
func CostsOf(g *dag.Graph, m *Machine, p *Profile, durations []float64) []plan.Cost {
	if g.Check() != nil || len(durations) != g.Len() {
		return nil
	}
	m = m.orDefault()
	costs := make([]plan.Cost, len(durations))
	for i := range costs {
		node := &g.Nodes[i]
		source := plan.FormulaCost
		if _, measured := p.of(node); measured {
			source = plan.MeasuredCost
		} else if node.HasCost {
			source = plan.DeclaredCost
		} else if !m.Unit && !p.estimates(node) {
			source = plan.UnknownCost
		}
		costs[i] = plan.Cost{US: durations[i], Source: source}
		if source == plan.FormulaCost || source == plan.UnknownCost {
			costs[i].Passes = p.passes(node)
		}
	}
	return costs
}

// estimates reports whether there is a formula for a node, and for a loop or branch whether something is known of each node of its bodies.
func (p *Profile) estimates(node *dag.Node) bool {
	if node.Control == nil {
		return hasFormula(node)
	}
	for _, body := range node.Control.Bodies {
		for i := range body.Nodes {
			inner := &body.Nodes[i]
			if _, measured := p.of(inner); !measured && !inner.HasCost && !p.estimates(inner) {
				return false
			}
		}
	}
	return true
}

// of returns the measured duration of a node. The profile may be nil.
func (p *Profile) of(node *dag.Node) (us float64, measured bool) {
	if p == nil || len(p.Nodes) == 0 {
		return 0, false
	}
	us, measured = p.Nodes[node.Name]
	return us, measured
}

// passes returns how many passes a loop is taken to make.
func (p *Profile) passes(n *dag.Node) plan.Passes {
	c := n.Control
	if c == nil || n.Kind != dag.Repeat || c.Condition == nil {
		return plan.Passes{}
	}
	if p != nil {
		if count, known := p.Passes[n.Name]; known && count >= 0 && count <= c.Times {
			return plan.Passes{Count: count, Source: plan.LearnedPasses}
		}
	}
	return plan.Passes{Count: c.Times, Source: plan.MostPasses}
}

// idle reports whether nothing is submitted for a node: a kernel of no blocks, an exchange with ranks that do not exist, or a communication of
// the only rank that leaves its data where they are. Cores look at each node even so.
func (m *Machine) idle(g *dag.Graph, node *dag.Node) bool {
	c := node.Communication
	switch {
	case m.Cores > 0:
		return false
	case node.Launch != nil:
		return node.Launch.Grid[0] == 0
	case c == nil:
		return false
	case c.Verb == dag.Exchange:
		return len(c.Partners(max(g.Ranks, 1))) == 0
	}
	return g.Ranks <= 1 && c.From == c.To && len(c.More) == 0
}

// submits is how long the host takes to submit a node.
func (m *Machine) submits(g *dag.Graph, node dag.NodeID) float64 {
	if m.idle(g, &g.Nodes[node]) {
		return 0
	}
	switch e := plan.EngineOf(g, node); {
	case m.CopyLaunchUS == 0:
	case e == plan.Upload || e == plan.Download:
		return m.CopyLaunchUS
	case g.Nodes[node].Set != nil:
		return setLaunch * m.CopyLaunchUS
	}
	return m.LaunchUS
}

// orDefault returns the machine, or the default one if it is nil.
func (m *Machine) orDefault() *Machine {
	if m == nil {
		return H200()
	}
	return m
}

// hasFormula reports whether a node's duration can be computed from its work. It can for copies, sets, maps and the library's kernels.
// For a kernel of the user and a host function only the bytes that it may access are known.
func hasFormula(node *dag.Node) bool {
	switch node.Kind {
	case dag.Task:
		return node.Work.US > 0
	case dag.HostFunction:
		return false
	case dag.Kernel:
		return node.Launch == nil && node.Work != dag.Work{} || node.Launch != nil && node.Launch.Module < 0
	}
	return true
}

// model estimates a node from its work.
func (m *Machine) model(g *dag.Graph, i int32) float64 {
	if m.Unit {
		return 1
	}
	node := &g.Nodes[i]
	bytes := float64(node.Work.Bytes)
	if m.idle(g, node) {
		return 0
	}
	if node.Communication != nil {
		return m.communication(g, node.Communication)
	}
	switch plan.EngineOf(g, dag.NodeID(i)) {
	case plan.Upload:
		return m.CopyUS + bytes/m.HostToDevice
	case plan.Download:
		return m.CopyUS + bytes/m.DeviceToHost
	case plan.PeerCopy:
		return m.CopyUS + bytes/m.PeerToPeer
	case plan.LocalCopy:
		start := m.CopyUS
		if m.FillUS > 0 {
			start = m.FillUS
		}
		return start + bytes/m.DeviceToDevice
	case plan.HostCopy:
		us := bytes / m.HostToHost
		if node.Kind == dag.HostFunction {
			us += m.CopyUS // until a thread of the host begins
		}
		return us
	}
	_, busy := m.fill(node)
	if busy == 0 {
		busy = 1
	}
	start, rate := node.Work.Steps*m.StepUS, m.Memory*busy
	least := max(m.KernelUS, node.Work.US, start, float64(node.Work.Flops)/(m.Flops*busy))
	if m.MemoryPerSM == 0 {
		return max(least, bytes/rate)
	}
	if node.Set != nil {
		start = m.FillUS
	}
	return max(least, start+bytes/m.reach(node))
}

// reach is the rate at which the multiprocessors that a kernel's blocks run on read and write memory.
func (m *Machine) reach(node *dag.Node) float64 {
	if node.Work.Blocks <= 0 {
		return m.Memory
	}
	return min(m.Memory, min(float64(node.Work.Blocks), float64(m.Multiprocessors))*m.MemoryPerSM)
}

// fill returns the fraction of the device's room for blocks that a kernel takes, and the fraction of its throughput that the kernel
// can use alone; both are 0 if its blocks are unknown. A kernel with few threads uses few multiprocessors and so only a fraction of
// the rates. That fraction is at most the fraction of the room, so kernels that run together do not exceed the rates.
func (m *Machine) fill(node *dag.Node) (places, busy float64) {
	blocks, threads, shared := float64(node.Work.Blocks), int(node.Work.Threads), int(node.Work.Shared)
	if node.Set != nil && blocks == 0 {
		blocks, threads = max(1, float64(node.Work.Bytes)/setBytesPerBlock), setThreads
	}
	if blocks <= 0 {
		return 0, 0
	}
	if threads <= 0 {
		threads = usualThreads
	}
	fit := min(m.BlocksPerSM, m.ThreadsPerSM/threads)
	if shared > 0 {
		fit = min(fit, m.SharedPerSM/shared)
	}
	fit = max(fit, 1)
	multiprocessors := float64(m.Multiprocessors)
	places = min(1, blocks/(float64(fit)*multiprocessors))
	busy = min(1, float64(fit*threads)/float64(m.BusyThreads), blocks*float64(threads)/(multiprocessors*float64(m.BusyThreads)))
	return max(places, busy), busy
}

// Share is the fraction of its device that a node takes while it runs: 0 if that is unknown or the node does not use the
// multiprocessors.
func (m *Machine) Share(node *dag.Node) float64 { return m.shareOf(node, math.Inf(1)) }

// shareOf is Share for a node that takes us microseconds alone. The time matters only on a machine with cores: short work is not worth
// dividing among them.
func (m *Machine) shareOf(node *dag.Node, us float64) float64 {
	switch {
	case m == nil || node == nil || m.Unit:
		return 0
	case m.Cores > 0:
		return m.coreShare(node, us)
	case node.Copy != nil, node.Kind == dag.HostFunction:
		return 0
	}
	places, _ := m.fill(node)
	return places
}

const (
	wakingUS     = 20      // for shorter work, waking another core costs more than running in parallel gains
	dividedUS    = 30      // shorter work stays on one core
	dividedBytes = 1 << 20 // a copy or set uses one core for each such part
	sleepingUS   = 200     // a kernel whose arguments make it wait this long leaves its core to others
)

// coreShare is the fraction of the cores that a node takes.
func (m *Machine) coreShare(node *dag.Node, us float64) float64 {
	parts := max(1, float64(node.Work.Blocks))
	measured, known := m.shares[node.Name]
	switch {
	case node.Work.US >= sleepingUS:
		return 0
	case us < wakingUS:
		return 1
	case known:
		return min(1, max(measured, 1/float64(m.Cores)))
	case us < dividedUS || node.Work.US > 0 || node.Kind == dag.HostFunction:
		parts = 1
	case node.Copy != nil || node.Set != nil:
		parts = max(1, float64(node.Work.Bytes)/dividedBytes)
	}
	return min(1, parts/float64(m.Cores))
}
