// Launches that overlap: which launches of a replay may begin before the one before them on their stream has ended. Each of them is proved with
// the code that was loaded.

package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

const (
	OverlapOff  Overlap = iota
	OverlapOn           // wherever that is proved to keep the order
	OverlapAuto         // where Learn measures that it is faster
)

func (o Overlap) String() string {
	if names := [...]string{"off", "on", "auto"}; int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Overlap(%d)", uint8(o))
}

// CanOverlap returns nil if launches on all devices of a platform can overlap, and otherwise why not.
func CanOverlap(platform cudart.Platform) error {
	if platform == nil {
		return errors.New("there is no platform")
	}
	p, ok := platform.(interface{ CanOverlap(device int32) error })
	if !ok {
		return fmt.Errorf("%w: launches overlap on NVIDIA GPUs only", cudart.ErrUnsupported)
	}
	for i := range platform.Devices() {
		if err := p.CanOverlap(int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// Overlaps reports whether launches overlap, and of how many nodes, in one replay.
func (p *Program) Overlaps() (nodes int, on bool) {
	if p == nil {
		return 0, false
	}
	return p.early, p.overlap
}

// useCode makes the program use the plain code or that whose kernels wait.
func (p *Program) useCode(waiting bool) {
	p.overlap = waiting
	if waiting {
		p.code = p.codes[1]
	} else {
		p.code = p.codes[0]
	}
}

// waiting returns a module in the form that lets launches of its kernels overlap; false if it has none.
func waiting(m *launch.Module) (*launch.Module, bool) {
	if m.Kind != launch.PTX && m.Kind != launch.Source {
		return m, false
	}
	w := *m
	w.Waiting = true
	return &w, true
}

// waits reports whether every kernel of loaded code waits for the launches before it, though it may have been loaded for launches that do not overlap.
func waits(loaded cudart.Module) bool {
	m, ok := loaded.(interface{ Waits() bool })
	return ok && m.Waits()
}

// mayBegin reports whether a command is a launch that may begin early, wherever it stands: its code was loaded so that it waits first, and it
// uses no variable of a module that launches write, because a constant one may be read as soon as the launch has begun. So may a texture be.
func (p *Program) mayBegin(c *cudart.Command) bool {
	if !p.overlap || c.Kind != cudart.LaunchKernel || c.Node < 0 || c.Cooperative || c.Cluster != [3]uint32{} || !p.code[0].waits[c.Node] {
		return false
	}
	if l := p.graph.Nodes[c.Node].Launch; l != nil && slices.ContainsFunc(l.Args, func(a dag.Arg) bool { return a.Texture != nil }) {
		return false
	}
	for _, a := range p.graph.Accesses(dag.NodeID(c.Node)) {
		if p.graph.Buffers[a.Buffer].Symbol != "" && p.writtenSymbols()[a.Buffer] {
			return false
		}
	}
	return true
}

func launched(n *dag.Node) bool { return n.Kind == dag.Kernel || n.Kind == dag.Map }

// writtenSymbols are the variables of modules that launches write.
func (p *Program) writtenSymbols() map[dag.BufferID]bool {
	if p.symbolsWritten != nil {
		return p.symbolsWritten
	}
	p.symbolsWritten = map[dag.BufferID]bool{}
	for i := range p.graph.Nodes {
		if !launched(&p.graph.Nodes[i]) {
			continue
		}
		for _, a := range p.graph.Accesses(dag.NodeID(i)) {
			if a.Mode&dag.Write != 0 && p.graph.Buffers[a.Buffer].Symbol != "" {
				p.symbolsWritten[a.Buffer] = true
			}
		}
	}
	return p.symbolsWritten
}

// overlapStreams lets launches begin early that come just after another launch on their stream, and proves that they may.
func (p *Program) overlapStreams(commands []cudart.Command) error {
	before := map[cudart.Stream]*cudart.Command{}
	var early []dag.NodeID
	waits := map[dag.NodeID]bool{}
	for i := range commands {
		c := &commands[i]
		switch c.Kind {
		case cudart.RangePush, cudart.RangePop:
			continue
		case cudart.LaunchKernel:
			last := before[c.Stream]
			c.Early = last != nil && last.Kind == cudart.LaunchKernel && last.Node >= 0 && launched(&p.graph.Nodes[last.Node]) && p.mayBegin(c)
			if c.Early {
				early = append(early, dag.NodeID(c.Node))
				waits[dag.NodeID(c.Node)] = c.Kernel.Attributes().WaitsFirst
			}
		}
		before[c.Stream] = c
	}
	return p.proveEarly(nil, early, waits)
}

// overlapGraph lets launches of a graph begin early whose only dependency is another launch, and proves that they may.
func (p *Program) overlapGraph(edges []plan.GraphEdge, commands []cudart.Command, deps [][]int32) error {
	var early []dag.NodeID
	waits := map[dag.NodeID]bool{}
	for i := range commands {
		c := &commands[i]
		c.Early = false
		if len(deps[i]) != 1 || !p.mayBegin(c) {
			continue
		}
		if from := &commands[deps[i][0]]; from.Kind == cudart.LaunchKernel && from.Node >= 0 && launched(&p.graph.Nodes[from.Node]) {
			c.Early = true
			early = append(early, dag.NodeID(c.Node))
			waits[dag.NodeID(c.Node)] = c.Kernel.Attributes().WaitsFirst
		}
	}
	return p.proveEarly(edges, early, waits)
}

func (p *Program) proveEarly(edges []plan.GraphEdge, early []dag.NodeID, waits map[dag.NodeID]bool) error {
	if len(early) == 0 {
		return nil
	}
	return proof.VerifyEarly(p.graph, p.plan, edges, early, func(node dag.NodeID) bool { return waits[node] })
}

// countEarly notes how many launches of a replay begin early.
func (p *Program) countEarly(commands []cudart.Command) {
	p.early = 0
	for i := range commands {
		if commands[i].Early {
			p.early++
		}
	}
}

// Follows reports whether a plan has launches that come just after others on their stream.
func Follows(g *dag.Graph, p *plan.Plan) bool {
	for _, s := range p.Streams {
		for k := 1; k < len(s.Ops); k++ {
			if a, b := s.Ops[k-1], s.Ops[k]; a.Kind == plan.Launch && b.Kind == plan.Launch && launched(&g.Nodes[a.Node]) && launched(&g.Nodes[b.Node]) {
				return true
			}
		}
	}
	return false
}
