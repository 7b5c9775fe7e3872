// Conversion of graphs from and to github.com/dominikbraun/graph.

// Package exchange converts between dagrun's graphs and those of github.com/dominikbraun/graph. It is a package of its own so that
// programs that hold no such graph do not build that module.
package exchange

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dominikbraun/graph"

	"github.com/dagrun/dagrun/dag"
)

// FromGraph makes a graph of tasks from one of github.com/dominikbraun/graph, so that it can be planned. Its edges become
// dependencies as if declared with after. node returns the dag.Node for a vertex: its name (if empty, the text of the key), cost,
// device, priority and stream. Vertices have no order of their own, so less defines the declaration order; of any two vertices it
// must order one before the other.
func FromGraph[K comparable, T any](g graph.Graph[K, T], node func(K, T) dag.Node, less func(a, b K) bool) (*dag.Graph, error) {
	switch {
	case g == nil:
		return nil, errors.New("there is no graph")
	case node == nil:
		return nil, errors.New("there is no function that makes a node of a vertex")
	case less == nil:
		return nil, errors.New("there is no function that orders the vertices")
	}
	if !g.Traits().IsDirected {
		return nil, errors.New("the graph is not directed")
	}
	adjacency, err := g.AdjacencyMap()
	if err != nil {
		return nil, fmt.Errorf("read the graph: %w", err)
	}
	keys := make([]K, 0, len(adjacency))
	for k := range adjacency {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	index := make(map[K]dag.NodeID, len(keys))
	for i, k := range keys {
		if i > 0 && !less(keys[i-1], k) {
			return nil, fmt.Errorf("less orders neither of the vertices %v and %v before the other", keys[i-1], k)
		}
		index[k] = dag.NodeID(i)
	}
	// Edges by source, so that every After comes out in order whatever the maps do; then grouped by target in one array.
	var edges [][2]dag.NodeID
	start := make([]int32, len(keys)+1)
	for i, k := range keys {
		for target := range adjacency[k] {
			to, ok := index[target]
			if !ok {
				return nil, fmt.Errorf("the edge from %v to %v leads to no vertex", k, target)
			}
			edges = append(edges, [2]dag.NodeID{dag.NodeID(i), to})
			start[to+1]++
		}
	}
	for i := range keys {
		start[i+1] += start[i]
	}
	after := make([]dag.NodeID, len(edges))
	next := slices.Clone(start)
	for _, e := range edges {
		after[next[e[1]]] = e[0]
		next[e[1]]++
	}
	b := dag.New("")
	b.Grow(len(keys), 0, 0)
	var wrong []error
	for i, k := range keys {
		vertex, err := g.Vertex(k)
		if err != nil {
			return nil, fmt.Errorf("read vertex %v: %w", k, err)
		}
		n := node(k, vertex)
		if n.Name == "" {
			n.Name = fmt.Sprint(k)
		}
		if n.Kind != dag.Task || n.Copy != nil || n.Set != nil || n.Launch != nil {
			wrong = append(wrong, &dag.DeclarationError{What: "node", Name: n.Name, Message: "a vertex has no buffers, so it can only become a task",
				Hint: "declare the node with dag.New"})
		}
		own := after[start[i]:start[i+1]:start[i+1]]
		if len(n.After) > 0 {
			own = append(n.After, own...)
		}
		n.After = own
		b.Node(n)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return b.Graph()
}

// Directed returns the graph as one of github.com/dominikbraun/graph: its vertices are the nodes by name, with their id as
// weight; so is each dag.Join, as a task without work; its edges have the dag.Edge as data and why it is there as the attribute "why".
func Directed(g *dag.Graph) (graph.Graph[string, dag.Node], error) {
	if g == nil || g.Pipeline == nil {
		return nil, errors.New("there is no graph")
	}
	d := graph.New(func(n dag.Node) string { return n.Name }, graph.Directed(), graph.Acyclic())
	for i := range g.Nodes {
		if err := d.AddVertex(g.Nodes[i], graph.VertexWeight(i)); err != nil {
			return nil, fmt.Errorf("node %q: %w", g.Nodes[i].Name, err)
		}
	}
	for k := range g.Joins() {
		id := dag.NodeID(g.Len() + k)
		if err := d.AddVertex(dag.Node{Name: g.NameOf(id), Kind: dag.Task}, graph.VertexWeight(int(id))); err != nil {
			return nil, fmt.Errorf("%s, which no node may be called: %w", g.NameOf(id), err)
		}
	}
	for _, e := range g.Edges() {
		err := d.AddEdge(g.NameOf(e.From), g.NameOf(e.To), graph.EdgeData(e), graph.EdgeAttribute("why", g.EdgeText(e)))
		if err != nil {
			return nil, fmt.Errorf("edge from %q to %q: %w", g.NameOf(e.From), g.NameOf(e.To), err)
		}
	}
	return d, nil
}
