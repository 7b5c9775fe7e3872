// Runnable examples of the exchange of graphs.

package exchange_test

import (
	"fmt"

	"github.com/dominikbraun/graph"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/exchange"
)

// A graph of that module can be planned.
func ExampleFromGraph() {
	jobs := graph.New(graph.StringHash, graph.Directed())
	for _, name := range []string{"train", "load", "report"} {
		_ = jobs.AddVertex(name)
	}
	_ = jobs.AddEdge("load", "train")
	_ = jobs.AddEdge("train", "report")
	g, err := exchange.FromGraph(jobs, func(name, _ string) dag.Node { return dag.Node{Name: name} }, func(a, b string) bool { return a < b })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range g.Topological() {
		fmt.Println(g.Nodes[i].Name)
	}
	// Output:
	// load
	// train
	// report
}

// A pipeline's dependencies can be passed to any code that works on graphs of that module.
func ExampleDirected() {
	b := dag.New("copy")
	in, d, out := b.Host("in", dag.F32, 4), b.Device("d", dag.F32, 4), b.Host("out", dag.F32, 4)
	b.Copy("up", b.Whole(d), b.Whole(in))
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	directed, err := exchange.Directed(g)
	if err != nil {
		fmt.Println(err)
		return
	}
	edge, err := directed.Edge("up", "down")
	fmt.Println(edge.Properties.Attributes["why"], err)
	// Output: RAW d <nil>
}
