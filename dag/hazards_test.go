// Tests of hazards against a comparison of every pair of nodes, byte by byte. Needs no library of kernels.

package dag

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// byteBuffers declares k device buffers of the given size in bytes.
func byteBuffers(b *Builder, k int, bytes int64) []BufferID {
	ids := make([]BufferID, k)
	for i := range ids {
		ids[i] = b.Device(fmt.Sprintf("b%d", i), U8, bytes)
	}
	return ids
}

// drawTasks declares random tasks. Their ranges come from a few shapes, so that whole buffers, equal parts, identical ranges and
// ranges that overlap partly all occur, alone and mixed.
func drawTasks(t *rapid.T, b *Builder) {
	const bytes = 24
	buffers := byteBuffers(b, rapid.IntRange(1, 3).Draw(t, "buffers"), bytes)
	shape := make([]int, len(buffers))
	for i := range shape {
		shape[i] = rapid.IntRange(0, 3).Draw(t, "shape")
	}
	n := rapid.IntRange(1, 14).Draw(t, "nodes")
	for i := range n {
		var accesses []Access
		for range rapid.IntRange(0, 4).Draw(t, "accesses") {
			k := rapid.IntRange(0, len(buffers)-1).Draw(t, "buffer")
			var lo, hi int64
			switch shape[k] {
			case 0:
				hi = bytes
			case 1:
				lo = 6 * rapid.Int64Range(0, 3).Draw(t, "part")
				hi = lo + 6
			case 2:
				lo = rapid.Int64Range(0, bytes).Draw(t, "lo")
				hi = rapid.Int64Range(lo, bytes).Draw(t, "hi")
			default:
				if hi = bytes; rapid.Bool().Draw(t, "slice") {
					lo = 3 * rapid.Int64Range(0, 7).Draw(t, "part")
					hi = lo + 3
				}
			}
			mode := Mode(rapid.IntRange(1, 3).Draw(t, "mode"))
			accesses = append(accesses, Access{Range{Buffer: BufferID(buffers[k]), Lo: lo, Hi: hi}, mode})
		}
		id := b.Task(fmt.Sprintf("n%d", i), accesses...)
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "declare") == 0 {
			b.At(id).After = append(b.At(id).After, NodeID(rapid.Int32Range(0, int32(i)-1).Draw(t, "after")))
		}
	}
}

// bruteForce applies the rule byte by byte. It returns the edges by pair, the pairs that conflict, the carried buffers, the
// reads of bytes that nothing wrote, and for each node whether its result is used.
func bruteForce(p *Pipeline) (edges map[[2]int32]Edge, conflict map[[2]int32]bool, carried []BufferID, unwritten []UnwrittenRead, used []bool) {
	used = make([]bool, len(p.Nodes))
	edges = map[[2]int32]Edge{}
	conflict = map[[2]int32]bool{}
	touches := func(i, buffer int32, x int64, mode Mode) bool {
		for _, a := range p.Accesses(NodeID(i)) {
			if a.Buffer == BufferID(buffer) && holds(a.Range, x) && a.Mode&mode != 0 {
				return true
			}
		}
		return false
	}
	add := func(from, to, buffer int32, why Why, x int64) {
		key := [2]int32{from, to}
		e, ok := edges[key]
		if !ok || why < e.Why || why == e.Why && BufferID(buffer) < e.Buffer {
			e = Edge{From: NodeID(from), To: NodeID(to), Buffer: BufferID(buffer), Why: why, Lo: x, Hi: x + 1}
		} else if why == e.Why && BufferID(buffer) == e.Buffer {
			e.Lo, e.Hi, e.Tile = widen(p, e.Buffer, e.Lo, e.Hi, e.Tile, x)
		}
		edges[key] = e
	}
	for buffer := range int32(len(p.Buffers)) {
		isCarried := false
		first := UnwrittenRead{Node: -1}
		var left []int32
		for x := range p.Buffers[buffer].Bytes {
			writer := int32(-1)
			var readers []int32
			for i := range int32(len(p.Nodes)) {
				reads, writes := touches(i, buffer, x, Read), touches(i, buffer, x, Write)
				for k := range i {
					if touches(k, buffer, x, Write) && (reads || writes) || writes && touches(k, buffer, x, Read) {
						conflict[[2]int32{k, i}] = true
					}
				}
				if reads {
					if writer >= 0 {
						add(writer, i, buffer, RAW, x)
						used[writer] = true
					} else if first.Node < 0 || NodeID(i) < first.Node {
						first = UnwrittenRead{Buffer: BufferID(buffer), Node: NodeID(i), Lo: x, Hi: x + 1}
					} else if NodeID(i) == first.Node {
						first.Lo, first.Hi, first.Tile = widen(p, first.Buffer, first.Lo, first.Hi, first.Tile, x)
					}
					readers = append(readers, i)
				}
				if writes {
					for _, r := range readers {
						if r != i {
							add(r, i, buffer, WAR, x)
						}
					}
					if len(readers) == 0 && writer >= 0 {
						add(writer, i, buffer, WAW, x)
					}
					isCarried = isCarried || writer < 0 && len(readers) > 0
					writer, readers = i, nil
				}
			}
			if writer >= 0 {
				left = append(left, writer)
			}
		}
		if isCarried {
			carried = append(carried, BufferID(buffer))
		}
		if first.Node >= 0 {
			unwritten = append(unwritten, first)
			for _, writer := range left {
				used[writer] = true
			}
		}
	}
	for to := range int32(len(p.Nodes)) {
		for _, from := range p.Nodes[to].After {
			e, ok := edges[[2]int32{int32(from), to}]
			if !ok {
				e = Edge{From: from, To: NodeID(to), Buffer: -1, Why: After}
			}
			e.Declared = true
			edges[[2]int32{int32(from), to}] = e
		}
	}
	return edges, conflict, carried, unwritten, used
}

// reachable returns for each node the bit set of nodes that its edges lead to, given edges that all go forward.
func reachable(n int, edges []Edge) []uint64 {
	reach := make([]uint64, n)
	for k := len(edges) - 1; k >= 0; k-- {
		e := edges[k]
		reach[e.From] |= 1<<e.To | reach[e.To]
	}
	return reach
}

func checkHazards(t require.TestingT, b *Builder) {
	want, conflict, carried, unwritten, used := bruteForce(&b.pipeline.Pipeline)
	var h hazards
	_, err := h.derive(&b.pipeline.Pipeline, nil)
	require.NoError(t, err)
	require.Equal(t, used, h.used)
	g, err := b.Graph()
	require.NoError(t, err)
	got := map[[2]int32]Edge{}
	for k, e := range g.Edges() {
		got[[2]int32{int32(e.From), int32(e.To)}] = e
		if k > 0 {
			before := g.Edges()[k-1]
			require.True(t, before.From < e.From || before.From == e.From && before.To < e.To, "edges in order, one for each pair")
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, carried, g.Carried())
	require.Equal(t, unwritten, g.ReadFirst())

	// Every pair that conflicts is ordered, and apart from after: nothing else is.
	reach := reachable(g.Len(), g.Edges())
	for pair := range conflict {
		require.NotZero(t, reach[pair[0]]&(1<<pair[1]), "n%d before n%d", pair[0], pair[1])
	}
	var full []Edge
	for from := range int32(g.Len()) {
		for to := from + 1; to < int32(g.Len()); to++ {
			if conflict[[2]int32{from, to}] || got[[2]int32{from, to}].Declared {
				full = append(full, Edge{From: NodeID(from), To: NodeID(to)})
			}
		}
	}
	require.Equal(t, reachable(g.Len(), full), reach)
	checkAdjacency(t, g)
}

// checkAdjacency checks that the four views of the edges agree.
func checkAdjacency(t require.TestingT, g *Graph) {
	in, out := 0, 0
	for i := range NodeID(g.Vertices()) {
		for k, e := range g.OutEdges(i) {
			require.Equal(t, i, e.From)
			require.Equal(t, e.To, g.Succs(i)[k])
			out++
		}
		require.Len(t, g.PredEdges(i), len(g.Preds(i)))
		for k, from := range g.Preds(i) {
			e := g.Edges()[g.PredEdges(i)[k]]
			require.Equal(t, [2]NodeID{from, i}, [2]NodeID{e.From, e.To})
			require.True(t, k == 0 || g.Preds(i)[k-1] < from)
			in++
		}
	}
	require.Equal(t, len(g.Edges()), in)
	require.Equal(t, len(g.Edges()), out)
	place := make([]int, g.Vertices())
	for k, i := range g.Sequence() {
		place[i] = k + 1
	}
	for _, e := range g.Edges() {
		require.Less(t, place[e.From], place[e.To])
	}
	require.NotContains(t, place, 0)
}

func TestHazardsAgreeWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New("random")
		drawTasks(t, b)
		checkHazards(t, b)
	})
}

func FuzzHazards(f *testing.F) {
	f.Add([]byte{0, 255, 3, 1, 0, 10, 2, 5, 20, 1, 0, 255, 3})
	f.Add([]byte{1, 3, 7, 2, 1, 1, 7, 1, 0, 200, 130, 66, 12, 99, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := New("fuzz")
		buffers := byteBuffers(b, 2, 16)
		var accesses []Access
		for i := 0; i+2 < len(data) && i < 120; i += 3 {
			lo, hi := int64(data[i])%17, int64(data[i+1])%17
			a := Access{Range{Buffer: BufferID(buffers[data[i+2]&1]), Lo: min(lo, hi), Hi: max(lo, hi)}, Mode(data[i+2]>>1%3 + 1)}
			accesses = append(accesses, a)
			if data[i+2]&64 == 0 || bits.OnesCount8(data[i]) > 6 {
				b.Task(fmt.Sprintf("n%d", i), accesses...)
				accesses = nil
			}
		}
		checkHazards(t, b)
	})
}
