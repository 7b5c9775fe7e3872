// Tests of the exchange with github.com/dominikbraun/graph, and its cost.

package exchange

import (
	"cmp"
	"fmt"
	"strconv"
	"testing"

	"github.com/dominikbraun/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
)

func TestFromGraph(t *testing.T) {
	type job struct {
		title string
		us    float64
	}
	foreign := graph.New(func(j job) string { return j.title }, graph.Directed())
	for _, j := range []job{{"train", 80}, {"load", 5}, {"split", 1}, {"report", 2}} {
		require.NoError(t, foreign.AddVertex(j))
	}
	for _, e := range [][2]string{{"load", "split"}, {"split", "train"}, {"train", "report"}, {"split", "report"}} {
		require.NoError(t, foreign.AddEdge(e[0], e[1]))
	}
	toNode := func(key string, j job) dag.Node {
		n := dag.Node{CostUS: j.us, HasCost: true}
		if key == "train" {
			n.Name, n.Stream, n.Priority = "long training", dag.OnStream(3), dag.High
		}
		return n
	}
	g, err := FromGraph(foreign, toNode, func(a, b string) bool { return a < b })
	require.NoError(t, err)
	require.Equal(t, []dag.Node{
		{Name: "load", CostUS: 5, HasCost: true, After: []dag.NodeID{}},
		{Name: "report", CostUS: 2, HasCost: true, After: []dag.NodeID{2, 3}},
		{Name: "split", CostUS: 1, HasCost: true, After: []dag.NodeID{0}},
		{Name: "long training", CostUS: 80, HasCost: true, Stream: dag.OnStream(3), Priority: dag.High, After: []dag.NodeID{2}},
	}, g.Nodes)
	require.Equal(t, []dag.NodeID{0, 2, 3, 1}, g.Topological())
	require.Len(t, g.Edges(), 4)
	for _, e := range g.Edges() {
		require.True(t, e.Declared)
		require.Equal(t, dag.After, e.Why)
	}
}

func TestFromGraphRefuses(t *testing.T) {
	less := func(a, b int) bool { return a < b }
	toNode := func(int, int) dag.Node { return dag.Node{} }

	_, err := FromGraph(graph.New(graph.IntHash), toNode, less)
	require.EqualError(t, err, "the graph is not directed")
	_, err = FromGraph(nil, toNode, less)
	require.EqualError(t, err, "there is no graph")
	_, err = FromGraph(graph.New(graph.IntHash, graph.Directed()), nil, less)
	require.EqualError(t, err, "there is no function that makes a node of a vertex")
	_, err = FromGraph(graph.New(graph.IntHash, graph.Directed()), toNode, nil)
	require.EqualError(t, err, "there is no function that orders the vertices")
	for _, none := range []*dag.Graph{nil, {}} {
		_, err = Directed(none)
		require.EqualError(t, err, "there is no graph")
	}

	g := graph.New(graph.IntHash, graph.Directed())
	for _, v := range []int{1, 2, 3} {
		require.NoError(t, g.AddVertex(v))
	}
	_, err = FromGraph(g, toNode, func(a, b int) bool { return a < 2 && b >= 2 })
	require.ErrorContains(t, err, "less orders neither of the vertices ")
	_, err = FromGraph(g, func(k, _ int) dag.Node { return dag.Node{Name: "same", Kind: dag.Kind(k % 2)} }, less)
	require.EqualError(t, err, "node \"same\": a vertex has no buffers, so it can only become a task; declare the node with dag.New\n"+
		"node \"same\": a vertex has no buffers, so it can only become a task; declare the node with dag.New")
	_, err = FromGraph(g, func(int, int) dag.Node { return dag.Node{Name: "same"} }, less)
	require.EqualError(t, err, "node \"same\": the name is taken (ids 0 and 1)\nnode \"same\": the name is taken (ids 0 and 2)")

	require.NoError(t, g.AddEdge(3, 2))
	require.NoError(t, g.AddEdge(2, 3))
	_, err = FromGraph(g, toNode, less)
	require.ErrorIs(t, err, dag.ErrCycle)
	require.EqualError(t, err, "dependency cycle: 2 -> 3 -> 2")

	require.NoError(t, g.AddEdge(1, 1))
	_, err = FromGraph(g, toNode, less)
	require.EqualError(t, err, `node "1" depends on itself`)
}

func TestDirected(t *testing.T) {
	b := dag.New("test")
	x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4)
	b.Task("a", b.Out(x))
	b.Task("b", b.Slice(x, 1, 3).In(), b.Out(y))
	b.After(b.Task("c", b.In(y)), 0)
	g, err := b.Graph()
	require.NoError(t, err)
	d, err := Directed(g)
	require.NoError(t, err)
	e, err := d.Edge("a", "b")
	require.NoError(t, err)
	require.Equal(t, g.Edges()[0], e.Properties.Data)
	require.Equal(t, "RAW x(1..3)", e.Properties.Attributes["why"])
	n, properties, err := d.VertexWithProperties("c")
	require.NoError(t, err)
	require.Equal(t, g.Nodes[2], n)
	require.Equal(t, 2, properties.Weight)
	order, err := graph.StableTopologicalSort(d, func(a, b string) bool { return a < b })
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, order)
}

// A graph that is handed out and read back orders every pair of nodes as before.
func TestDirectedComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := dag.New("random")
		x := b.Device("x", dag.U8, 8)
		for i := range rapid.IntRange(1, 12).Draw(t, "tasks") {
			lo := rapid.Int64Range(0, 7).Draw(t, "lo")
			access := dag.Access{Range: b.Slice(x, lo, rapid.Int64Range(lo+1, 8).Draw(t, "hi")), Mode: rapid.SampledFrom([]dag.Mode{dag.Read, dag.Write, dag.ReadWrite}).Draw(t, "mode")}
			id := b.Task(fmt.Sprint("n", i), access)
			if i > 0 && rapid.Bool().Draw(t, "after") {
				b.After(id, dag.NodeID(rapid.Int32Range(0, int32(i)-1).Draw(t, "first")))
			}
		}
		g, err := b.Graph()
		require.NoError(t, err)
		id := map[string]int{}
		for i := range g.Nodes {
			id[g.Nodes[i].Name] = i
		}
		directed, err := Directed(g)
		require.NoError(t, err)
		back, err := FromGraph(directed, func(_ string, n dag.Node) dag.Node { return n }, func(a, b string) bool { return id[a] < id[b] })
		require.NoError(t, err)
		require.Equal(t, g.Len(), back.Len())
		for i := range int32(g.Len()) {
			require.Equal(t, g.Nodes[i].Name, back.Nodes[i].Name)
			require.ElementsMatch(t, g.Succs(dag.NodeID(i)), back.Succs(dag.NodeID(i)))
		}
	})
}

func BenchmarkFromGraph(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			foreign := graph.New(graph.IntHash, graph.Directed())
			for i := range n {
				if err := foreign.AddVertex(i); err != nil {
					b.Fatal(err)
				}
				for _, from := range []int{i - 1, i - 64} {
					if from >= 0 {
						if err := foreign.AddEdge(from, i); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				_, err := FromGraph(foreign, func(k, _ int) dag.Node { return dag.Node{Name: "n" + strconv.Itoa(k)} }, func(x, y int) bool { return cmp.Less(x, y) })
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/node")
		})
	}
}

func BenchmarkDirected(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			builder := dag.New("bench")
			for i := range n {
				id := builder.Task(fmt.Sprint("n", i))
				for _, from := range []int{i - 1, i - 64} {
					if from >= 0 {
						builder.After(id, dag.NodeID(from))
					}
				}
			}
			g, err := builder.Graph()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Directed(g); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/node")
		})
	}
}
