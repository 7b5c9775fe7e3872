// Tests of joins: they order exactly the nodes that edges from node to node would order, in bounded time.

package dag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/internal/crowd"
)

// joinEarly makes even small graphs have joins until the test ends.
func joinEarly(t *testing.T) { t.Cleanup(crowd.Early(false)) }

// drawOverlaps declares tasks on a few buffers with ranges that overlap partly, so that joins of joins occur.
func drawOverlaps(t *rapid.T, b *Builder, most int) {
	const bytes = 40
	buffers := byteBuffers(b, rapid.IntRange(1, 2).Draw(t, "buffers"), bytes)
	n := rapid.IntRange(2, most).Draw(t, "nodes")
	for i := range n {
		var accesses []Access
		for range rapid.IntRange(1, 3).Draw(t, "accesses") {
			lo, hi := int64(0), int64(bytes)
			switch rapid.IntRange(0, 4).Draw(t, "shape") {
			case 0: // the whole
			case 1:
				lo = rapid.Int64Range(0, bytes-1).Draw(t, "byte")
				hi = lo + 1
			default:
				lo = rapid.Int64Range(0, bytes-1).Draw(t, "lo")
				hi = rapid.Int64Range(lo, bytes).Draw(t, "hi")
			}
			mode := []Mode{Read, Read, Write, Write, Read | Write}[rapid.IntRange(0, 4).Draw(t, "mode")]
			accesses = append(accesses, Access{Range{Buffer: buffers[rapid.IntRange(0, len(buffers)-1).Draw(t, "buffer")], Lo: lo, Hi: hi}, mode})
		}
		b.Task(fmt.Sprintf("n%d", i), accesses...)
	}
}

// nodesBefore returns the nodes before a node, with joins replaced by the nodes before them.
func nodesBefore(g *Graph, i NodeID) []NodeID {
	var nodes []NodeID
	left := slices.Clone(g.Preds(i))
	seen := map[NodeID]bool{}
	for len(left) > 0 {
		q := left[len(left)-1]
		left = left[:len(left)-1]
		if seen[q] {
			continue
		}
		seen[q] = true
		if g.IsJoin(q) {
			left = append(left, g.Preds(q)...)
		} else {
			nodes = append(nodes, q)
		}
	}
	slices.Sort(nodes)
	return nodes
}

func TestJoinsMeanTheSameAsEdges(t *testing.T) {
	joinEarly(t)
	joins, joinsOfJoins := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := New("random")
		drawOverlaps(t, b, 32)
		want, _, carried, unwritten, used := bruteForce(&b.pipeline.Pipeline)
		var h hazards
		_, err := h.derive(&b.pipeline.Pipeline, slices.Repeat([]bool{true}, len(b.pipeline.Buffers)))
		require.NoError(t, err)
		require.Equal(t, used, h.used)
		g, err := b.Graph()
		require.NoError(t, err)
		require.Equal(t, carried, g.Carried())
		require.Equal(t, unwritten, g.ReadFirst())
		checkAdjacency(t, g)
		joins += len(g.Joins())
		direct := map[[2]int32]Edge{}
		for _, e := range g.Edges() {
			direct[[2]int32{int32(e.From), int32(e.To)}] = e
			if !g.IsJoin(e.To) {
				continue
			}
			j := g.Joins()[int(e.To)-g.Len()]
			require.Equal(t, j.Buffer, e.Buffer)
			require.Equal(t, j.Why, e.Why)
			require.True(t, j.Lo <= e.Lo && e.Lo < e.Hi && e.Hi <= j.Hi)
			if g.IsJoin(e.From) {
				joinsOfJoins++
			}
		}
		for i := range NodeID(g.Len()) {
			var expected []NodeID
			for from := range i {
				if e, ok := want[[2]int32{int32(from), int32(i)}]; ok {
					expected = append(expected, from)
					if found, ok := direct[[2]int32{int32(from), int32(i)}]; ok && found.Why == e.Why && found.Buffer == e.Buffer {
						require.True(t, e.Lo <= found.Lo && found.Hi <= e.Hi)
					}
				}
			}
			require.Equal(t, expected, nodesBefore(g, i), "n%d", i)
		}
	})
	require.Positive(t, joins)
	require.Positive(t, joinsOfJoins)
	t.Logf("%d joins, %d joins of joins", joins, joinsOfJoins)
}

func TestOrdinaryGraphsHaveNoJoins(t *testing.T) {
	b := New("all to all")
	x := b.Device("x", U8, 1000)
	for i := range int64(1000) {
		b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
	}
	for i := range 1000 {
		b.Task(fmt.Sprintf("r%d", i), b.In(x))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.Empty(t, g.Joins())
	require.Len(t, g.Edges(), 1_000_000)
	require.Equal(t, g.Len(), g.Vertices())
	require.Equal(t, g.Topological(), g.Sequence())
}

// crowdedShapes are graphs in which the number of dependencies is quadratic in the number of nodes.
var crowdedShapes = []struct {
	name    string
	declare func(b *Builder, n int)
}{
	{"writers of bytes, readers of all", func(b *Builder, n int) {
		x := b.Device("x", U8, int64(n))
		for i := range int64(n) {
			b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
		}
		for i := range n {
			b.Task(fmt.Sprintf("r%d", i), b.In(x))
		}
	}},
	{"readers of all, writers of slices", func(b *Builder, n int) {
		x := b.Device("x", U8, int64(2*n))
		for i := range n {
			b.Task(fmt.Sprintf("r%d", i), b.In(x))
		}
		for i := range int64(n) {
			b.Task(fmt.Sprintf("w%d", i), b.Slice(x, 2*i, 2*i+2).Out())
		}
	}},
	{"in turn", func(b *Builder, n int) {
		x := b.Device("x", U8, int64(n))
		for i := range int64(n) {
			b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
		}
		for i := range int64(n) {
			b.Task(fmt.Sprintf("r%d", i), b.In(x))
			b.Task(fmt.Sprintf("a%d", i), b.Slice(x, i*7919%int64(n), i*7919%int64(n)+1).Out())
		}
	}},
	{"windows", func(b *Builder, n int) {
		x := b.Device("x", U8, int64(n))
		for i := range int64(n) {
			b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
		}
		for i := range int64(n) / 2 {
			b.Task(fmt.Sprintf("r%d", i), b.Slice(x, i, i+int64(n)/2).In())
		}
		for i := range int64(n) {
			b.Task(fmt.Sprintf("a%d", i), b.Slice(x, i, i+1).Out())
		}
	}},
	{"checkerboard", func(b *Builder, n int) {
		x := b.Device("x", U8, int64(2*n))
		for i := range int64(n) {
			b.Task(fmt.Sprintf("w%d", i), b.Slice(x, 2*i, 2*i+1).Out())
		}
		for i := range int64(n) {
			b.Task(fmt.Sprintf("r%d", i), b.Slice(x, i%2, int64(2*n)-i%3).In())
		}
	}},
	{"columns and bands", func(b *Builder, n int) {
		// A matrix of 64 rows; writers write columns, row by row, and readers read bands of rows.
		const rows = 64
		x := b.Device("x", U8, rows, int64(n))
		for i := range int64(n) {
			var accesses []Access
			for r := range int64(rows) {
				accesses = append(accesses, Access{Range{Buffer: x, Lo: r*int64(n) + i, Hi: r*int64(n) + i + 1}, Write})
			}
			b.Task(fmt.Sprintf("w%d", i), accesses...)
		}
		for i := range int64(n) {
			lo := i % (rows / 2)
			b.Task(fmt.Sprintf("r%d", i), Access{Range{Buffer: x, Lo: lo * int64(n), Hi: (lo + rows/2) * int64(n)}, Read})
		}
	}},
	{"random", func(b *Builder, n int) {
		rng := rand.New(rand.NewPCG(1, 2))
		x := b.Device("x", U8, int64(n))
		for i := range n {
			lo, hi := rng.Int64N(int64(n)), rng.Int64N(int64(n))
			mode := Read
			if i%2 == 0 {
				mode, hi = Write, lo+1
			}
			b.Task(fmt.Sprintf("n%d", i), Access{Range{Buffer: x, Lo: min(lo, hi), Hi: max(lo, hi)}, mode})
		}
	}},
}

// The number of edges of a crowded graph grows with its accesses times the depth of their tree, not with their square.
func TestCrowdedGraphsStaySmall(t *testing.T) {
	for _, shape := range crowdedShapes {
		t.Run(shape.name, func(t *testing.T) {
			n := 6_000
			if strings.HasPrefix(shape.name, "columns") {
				n = 2_000
			}
			b := New("crowded")
			shape.declare(b, n)
			accesses := len(b.pipeline.accesses)
			g, err := b.Graph()
			require.NoError(t, err)
			require.NotEmpty(t, g.Joins())
			require.Less(t, len(g.Edges()), 64*accesses)
			require.Less(t, len(g.Joins()), 16*accesses)
			require.Len(t, g.Sequence(), g.Vertices())
			t.Logf("%d nodes, %d accesses, %d edges, %d joins", g.Len(), accesses, len(g.Edges()), len(g.Joins()))
		})
	}
}

func TestEdgeLimitNamesTheBuffer(t *testing.T) {
	b := New("dense")
	b.pipeline.MaxEdges = 100
	b.Device("y", U8, 4)
	x := b.Device("x", U8, 20)
	for i := range int64(20) {
		b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
	}
	for i := range 20 {
		b.Task(fmt.Sprintf("r%d", i), b.In(x))
	}
	_, err := b.Graph()
	require.ErrorIs(t, err, ErrTooManyEdges)
	require.EqualError(t, err, `the first 26 nodes have more than 100 dependencies, the limit, which takes 7.42 KiB of memory; 120 of them are for bytes of buffer "x", which has 40 accesses; let accesses be equal or apart instead of overlapping in part, or make several buffers of it`)
	var limit *EdgeLimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, EdgeLimitError{Buffer: x, Edges: 120, Accesses: 40, Node: 25}, EdgeLimitError{Buffer: limit.Buffer, Edges: limit.Edges, Accesses: limit.Accesses, Node: limit.Node, Pos: limit.Pos})

	b = New("after")
	b.pipeline.MaxEdges = 100
	for i := range 20 {
		id := b.Task(fmt.Sprintf("n%d", i))
		for q := range id {
			b.After(id, q)
		}
	}
	_, err = b.Graph()
	require.EqualError(t, err, `the first 15 nodes have more than 100 dependencies, the limit, which takes 7.42 KiB of memory; 105 of them are declared with after; put one node after many, and others after that one`)
}

func TestCycleThroughAJoin(t *testing.T) {
	joinEarly(t)
	b := New("cycle")
	x := b.Device("x", U8, 8)
	last := b.Task("last")
	for i := range int64(8) {
		b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
	}
	for i := range 4 {
		b.After(last, b.Task(fmt.Sprintf("r%d", i), b.In(x)))
	}
	b.After(3, last)
	_, err := b.Graph()
	require.EqualError(t, err, "dependency cycle: last -> w2 -> r0 -> last")
}

func TestSequenceOfAGraphWithBackwardEdges(t *testing.T) {
	joinEarly(t)
	b := New("backward")
	x := b.Device("x", U8, 8)
	first := b.Task("first")
	for i := range int64(8) {
		b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out())
	}
	for i := range 4 {
		b.Task(fmt.Sprintf("r%d", i), b.In(x))
	}
	b.After(first, 6)
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Joins())
	checkAdjacency(t, g)
	require.Len(t, g.Sequence(), g.Vertices())
	require.Equal(t, g.Topological(), slices.DeleteFunc(slices.Clone(g.Sequence()), g.IsJoin))
	require.Equal(t, "join 0", g.NameOf(NodeID(g.Len())))
}
