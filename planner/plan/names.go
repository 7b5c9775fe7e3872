// Names of nodes and buffers for people.

package plan

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// NodeName names a node for people, one that does not exist too.
func NodeName(g *dag.Graph, node dag.NodeID) string {
	if node < 0 || int(node) >= g.Len() {
		return fmt.Sprintf("node %d", node)
	}
	if name := g.Nodes[node].Name; name != "" {
		return name
	}
	return fmt.Sprintf("node %d", node)
}

func BufferName(g *dag.Graph, buffer dag.BufferID) string {
	if buffer < 0 || int(buffer) >= len(g.Buffers) {
		return fmt.Sprintf("buffer %d", buffer)
	}
	if name := g.Buffers[buffer].Name; name != "" {
		return name
	}
	return fmt.Sprintf("buffer %d", buffer)
}
