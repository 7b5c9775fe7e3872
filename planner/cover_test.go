// Tests of cover against exhaustive search: waits and streams. Uses none of cover's algorithms.

package planner

import (
	"context"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// after returns for each node the bit set of nodes that depend on it, directly or indirectly. Up to 64 nodes.
func after(preds [][]int32) []uint64 {
	n := len(preds)
	reach := make([]uint64, n)
	for i := n - 1; i >= 0; i-- {
		for _, q := range preds[i] {
			reach[q] |= 1<<i | reach[i]
		}
	}
	return reach
}

// reducedEdges returns the edges that are not implied by a longer path.
func reducedEdges(preds [][]int32) [][2]int {
	reach := after(preds)
	var edges [][2]int
	for from := range preds {
		for to := range preds {
			if reach[from]>>to&1 == 0 {
				continue
			}
			direct := true
			for mid := range preds {
				direct = direct && !(reach[from]>>mid&1 == 1 && reach[mid]>>to&1 == 1)
			}
			if direct {
				edges = append(edges, [2]int{from, to})
			}
		}
	}
	return edges
}

// widest tries every set of nodes and returns the size of the largest in which no node depends on another.
func widest(preds [][]int32) int {
	reach := after(preds)
	best := 0
	var grow func(from, size int, blocked uint64)
	grow = func(from, size int, blocked uint64) {
		best = max(best, size)
		for i := from; i < len(preds); i++ {
			if blocked>>i&1 == 0 && size+len(preds)-i > best {
				grow(i+1, size+1, blocked|reach[i])
			}
		}
	}
	grow(0, 0, 0)
	return best
}

// mostPairs tries every set of edges and returns the size of the largest in which no two edges start or end at the same node.
func mostPairs(edges [][2]int) int {
	memo := map[[2]uint64]int{}
	var grow func(at int, from, to uint64) int
	grow = func(at int, from, to uint64) int {
		if at == len(edges) {
			return 0
		}
		// Edges are ordered by where they start, so only the open start matters.
		key := [2]uint64{uint64(at)<<32 | from>>edges[at][0]&1, to}
		if v, ok := memo[key]; ok {
			return v
		}
		best := grow(at+1, from, to)
		if e := edges[at]; from>>e[0]&1 == 0 && to>>e[1]&1 == 0 {
			best = max(best, 1+grow(at+1, from|1<<e[0], to|1<<e[1]))
		}
		memo[key] = best
		return best
	}
	return grow(0, 0, 0)
}

func checkCover(t require.TestingT, s *plantest.Shape, made *Plan) {
	edges := reducedEdges(s.Preds)
	require.Equal(t, len(edges)-mostPairs(edges), made.Stats.Waits, "waits")
	require.Equal(t, widest(s.Preds), made.Stats.Streams, "streams")
	// Nodes of one stream depend on each other.
	reach := after(s.Preds)
	for k := range made.Streams {
		last := int32(-1)
		for _, op := range made.Streams[k].Ops {
			if op.Kind == plan.Launch {
				require.True(t, last < 0 || reach[last]>>op.Node&1 == 1, "stream %d orders %d before %d without need", k, last, op.Node)
				last = int32(op.Node)
			}
		}
	}
}

func TestCoverReachesTheWidthWhereJoiningChainsDoesNot(t *testing.T) {
	s := plantest.EdgesShape("narrow", 7, [2]int32{0, 3}, [2]int32{1, 5}, [2]int32{1, 6}, [2]int32{2, 3}, [2]int32{3, 4}, [2]int32{3, 5})
	plan, err := New(context.Background(), s.Graph(t), Options{Strategy: "cover"})
	require.NoError(t, err)
	require.Equal(t, 3, plan.Stats.Streams)
	require.Equal(t, 3, plan.Stats.Waits)
	checkCover(t, s, plan)
}

func TestCoverEqualsExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plantest.DrawShape(t, 14)
		if len(s.Preds) > 24 {
			t.Skip("too large to search")
		}
		plan, err := New(context.Background(), plantest.MustOrder(t, s), Options{Strategy: "cover", Streams: len(s.Preds)})
		require.NoError(t, err)
		checkCover(t, s, plan)
	})
}

// Every graph of five nodes whose edges go from lower to higher ids.
func TestCoverOnEveryGraphOfFiveNodes(t *testing.T) {
	var pairs [][2]int32
	for to := range int32(5) {
		for from := range to {
			pairs = append(pairs, [2]int32{from, to})
		}
	}
	for set := range 1 << len(pairs) {
		var edges [][2]int32
		for rest := uint(set); rest != 0; rest &= rest - 1 {
			edges = append(edges, pairs[bits.TrailingZeros(rest)])
		}
		s := plantest.EdgesShape("five", 5, edges...)
		plan, err := New(context.Background(), s.Ordered(t), Options{Strategy: "cover"})
		require.NoError(t, err)
		checkCover(t, s, plan)
	}
}

func TestCoverSaysHowManyStreamsItNeeds(t *testing.T) {
	g := plantest.TaskBench("stencil", 8, 2, 0).Graph(t)
	_, err := New(context.Background(), g, Options{Strategy: "cover", Streams: 4})
	require.ErrorIs(t, err, place.ErrTooManyStreams)
	require.EqualError(t, err, "cover needs 8 compute streams on device 0, one for each node that can run at the same time, and 4 are allowed: not enough streams")
}

// Only a limit that the user set limits cover's streams.
func TestCoverTakesTheStreamsItNeeds(t *testing.T) {
	wide := func(n int) *dag.Graph { return (&plantest.Shape{Name: "wide", Preds: make([][]int32, n)}).Ordered(t) }
	plan, err := New(context.Background(), wide(20), Options{Strategy: "cover", Machine: Unit()})
	require.NoError(t, err)
	require.Len(t, plan.Streams, 20)
	require.Equal(t, 1.0, plan.Stats.MakespanUS)
	require.Equal(t, 1.0, plan.Stats.LowerBoundUS)
	_, err = New(context.Background(), wide(20), Options{Strategy: "cover", Streams: 8})
	require.EqualError(t, err, "cover needs 20 compute streams on device 0, one for each node that can run at the same time, and 8 are allowed: not enough streams")
	_, err = New(context.Background(), wide(129), Options{Strategy: "cover"})
	require.EqualError(t, err, "cover needs 129 compute streams on device 0, one for each node that can run at the same time, and 128 are allowed: not enough streams")
}
