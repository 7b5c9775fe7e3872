// Engines: which part of a machine a node runs on.

package plan

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// Engine is a part of a machine that nodes run on. Each device has one of every kind; HostCopy belongs to the host.
type Engine uint8

const (
	Compute   Engine = iota // the multiprocessors: kernels, maps, sets and tasks
	Upload                  // host to device
	Download                // device to host
	PeerCopy                // device to another device
	LocalCopy               // within a device
	HostCopy                // host to host, and host functions
	EngineKinds
)

var engineNames = []string{"compute", "h2d", "d2h", "peer", "d2d", "host"}

func (e Engine) String() string { return words.Name(e, "Engine", engineNames) }

// EngineOf returns the engine that node i of g runs on, Compute for a node that does not exist.
func EngineOf(g *dag.Graph, i dag.NodeID) Engine {
	if i < 0 || int(i) >= g.Len() {
		return Compute
	}
	node := &g.Nodes[i]
	if node.Kind == dag.HostFunction {
		return HostCopy
	}
	if node.Copy == nil && node.Set == nil { // nearly always, and asked for every node of every plan that is tried
		return Compute
	}
	return movingEngine(g, node)
}

// movingEngine is EngineOf for a copy or a set.
func movingEngine(g *dag.Graph, node *dag.Node) Engine {
	if g.Check() != nil {
		return Compute
	}
	switch {
	case node.Copy != nil:
		from, to := &g.Buffers[node.Copy.Src.Buffer], &g.Buffers[node.Copy.Dst.Buffer]
		switch {
		case from.Place == dag.Host && to.Place == dag.Host:
			return HostCopy
		case from.Place == dag.Host:
			return Upload
		case to.Place == dag.Host:
			return Download
		case from.Device != to.Device:
			return PeerCopy
		}
		return LocalCopy
	case node.Set != nil && g.Buffers[node.Set.Dst.Buffer].Place == dag.Host:
		return HostCopy
	}
	return Compute
}
