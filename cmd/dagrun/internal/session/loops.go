// The nodes of loops and branches.

package session

import (
	"github.com/dagrun/dagrun/dag"
)

// allNodes returns the nodes of a graph and of all bodies in it.
func allNodes(g *dag.Graph) []*dag.Node {
	var nodes []*dag.Node
	g.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			nodes = append(nodes, &g.Nodes[i])
		}
	})
	return nodes
}
