// Names of nodes and buffers for messages.

package plan

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// NodeName returns the name of a node for messages, or its number if it has no name or does not exist.
func NodeName(g *dag.Graph, node dag.NodeID) string {
	if node < 0 || int(node) >= g.Len() {
		return fmt.Sprintf("node %d", node)
	}
	if name := g.Nodes[node].Name; name != "" {
		return name
	}
	return fmt.Sprintf("node %d", node)
}

// BufferName returns the name of a buffer for messages, or its number if it has no name or does not exist.
func BufferName(g *dag.Graph, buffer dag.BufferID) string {
	if g == nil || g.Pipeline == nil || buffer < 0 || int(buffer) >= len(g.Buffers) {
		return fmt.Sprintf("buffer %d", buffer)
	}
	if name := g.Buffers[buffer].Name; name != "" {
		return name
	}
	return fmt.Sprintf("buffer %d", buffer)
}
