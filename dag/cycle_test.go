// Tests of topological order and cycles: the canonical answers, and components compared with those of another package.

package dag

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dominikbraun/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tasks declares n nodes without accesses, named a, b, c, …, with the given dependencies (from, to).
func tasks(n int, after ...[2]int32) *Builder {
	b := New("tasks")
	for i := range n {
		b.Task(string(rune('a' + i)))
	}
	for _, e := range after {
		to := b.At(NodeID(e[1]))
		to.After = append(to.After, NodeID(e[0]))
	}
	return b
}

func TestCycles(t *testing.T) {
	for _, test := range []struct {
		name  string
		n     int
		after [][2]int32
		want  string
		nodes []NodeID
	}{
		{"two", 2, [][2]int32{{0, 1}, {1, 0}}, "dependency cycle: a -> b -> a", []NodeID{0, 1}},
		{"starts at the first declared", 4, [][2]int32{{3, 1}, {1, 2}, {2, 3}, {0, 3}}, "dependency cycle: b -> c -> d -> b", []NodeID{1, 2, 3}},
		{"order of nodes is not order of declaration", 3, [][2]int32{{0, 2}, {2, 1}, {1, 0}}, "dependency cycle: a -> c -> b -> a", []NodeID{0, 2, 1}},
		{"shortest through the first", 4, [][2]int32{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {2, 0}}, "dependency cycle: a -> b -> c -> a", []NodeID{0, 1, 2}},
		{"first declared of two circles", 6, [][2]int32{{5, 4}, {4, 5}, {4, 1}, {1, 2}, {2, 1}}, "dependency cycle: b -> c -> b", []NodeID{1, 2}},
		{"what leads to and from a circle is not named", 5, [][2]int32{{4, 1}, {1, 2}, {2, 1}, {2, 3}, {3, 0}}, "dependency cycle: b -> c -> b", []NodeID{1, 2}},
		{"self", 3, [][2]int32{{1, 1}, {0, 2}}, `node "b" depends on itself`, []NodeID{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := tasks(test.n, test.after...).Graph()
			require.Nil(t, g)
			require.ErrorIs(t, err, ErrCycle)
			require.EqualError(t, err, test.want)
			var cycle *CycleError
			require.ErrorAs(t, err, &cycle)
			require.Equal(t, test.nodes, cycle.Nodes)
		})
	}
}

func TestCycleThroughData(t *testing.T) {
	b := New("mixed")
	x := b.Device("x", F32, 4)
	write := b.Task("write", b.Out(x))
	read := b.Task("read the result", b.In(x))
	b.At(write).After = []NodeID{read}
	_, err := b.Graph()
	require.EqualError(t, err, `dependency cycle: write -> "read the result" -> write`)
}

func TestLongCycleIsCutShort(t *testing.T) {
	const n = 40
	b := New("ring")
	for i := range n {
		id := b.Task(fmt.Sprint("n", i))
		b.At(id).After = []NodeID{NodeID((i + n - 1) % n)}
	}
	_, err := b.Graph()
	require.EqualError(t, err, "dependency cycle: n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> (24 more) -> "+
		"n32 -> n33 -> n34 -> n35 -> n36 -> n37 -> n38 -> n39 -> n0")
	var cycle *CycleError
	require.ErrorAs(t, err, &cycle)
	require.Len(t, cycle.Nodes, n)
}

func TestTopologicalTakesTheFirstDeclaredOfTheReady(t *testing.T) {
	g, err := tasks(6, [2]int32{4, 0}, [2]int32{5, 1}, [2]int32{2, 5}).Graph()
	require.NoError(t, err)
	require.Equal(t, []NodeID{2, 3, 4, 0, 5, 1}, g.Topological())
	checkAdjacency(t, g)
}

func TestComponentsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		b := New("random")
		other := graph.New(func(i int32) int32 { return i }, graph.Directed())
		for i := range n {
			b.Task(fmt.Sprint(i))
			// The other package loses a component whose first vertex has the zero key.
			require.NoError(t, other.AddVertex(int32(i)+1))
		}
		for range rapid.IntRange(0, 24).Draw(t, "edges") {
			from, to := rapid.Int32Range(0, int32(n)-1).Draw(t, "from"), rapid.Int32Range(0, int32(n)-1).Draw(t, "to")
			if from != to && !slices.Contains(b.At(NodeID(to)).After, NodeID(from)) {
				b.At(NodeID(to)).After = append(b.At(NodeID(to)).After, NodeID(from))
				require.NoError(t, other.AddEdge(from+1, to+1))
			}
		}
		var h hazards
		h.derive(&b.pipeline.Pipeline, nil)
		g := &Graph{Pipeline: &b.pipeline.Pipeline}
		g.connect(&h.log)
		open := slices.Repeat([]int32{1}, n)
		component, size := g.components(open)
		want, err := graph.StronglyConnectedComponents(other)
		require.NoError(t, err)
		require.Len(t, size, len(want))
		for _, nodes := range want {
			c := component[nodes[0]-1]
			require.EqualValues(t, len(nodes), size[c])
			for _, i := range nodes {
				require.Equal(t, c, component[i-1])
			}
		}
		_, err = newGraph(&b.pipeline.Pipeline)
		if len(want) == n {
			require.NoError(t, err)
			return
		}
		// The canonical cycle starts at the lowest node on any cycle and follows edges that exist.
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
		for i, c := range component {
			if size[c] > 1 {
				require.EqualValues(t, i, cycle.Nodes[0])
				break
			}
		}
		for k, i := range cycle.Nodes {
			require.Contains(t, b.At(cycle.Nodes[(k+1)%len(cycle.Nodes)]).After, i)
		}
	})
}
