// Tests of graphs that cover refuses.

package place

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

func TestCoverRefusesLargeGraphs(t *testing.T) {
	p := &Problem{ctx: context.Background(), g: plantest.Chains(1, mostCovered+1).Ordered(t)}
	_, err := Cover(p)
	require.ErrorIs(t, err, ErrGraphTooLarge)
	require.EqualError(t, err, "cover takes graphs of up to 50000 nodes, this one has 50001; list takes any: graph too large for the strategy")
}

// Cover takes as many streams as kernels can run at once, beside those that users numbered, and says so where there are fewer.
func TestCoverNeedsAStreamForEachNodeAtOnce(t *testing.T) {
	declare := func(devices, wide, bound int) *dag.Graph {
		b := dag.New("wide")
		for d := range devices {
			for k := range wide {
				node := b.Task(fmt.Sprint("n", d, ".", k))
				b.At(node).Device = int32(d)
				if k < bound {
					b.Stream(node, int32(d*wide+k))
				}
			}
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	for _, c := range []struct {
		devices, wide, bound, streams int
		fine                          bool
	}{{1, 3, 0, 3, true}, {1, 3, 0, 2, false}, {1, 3, 1, 2, true}, {1, 3, 2, 1, true}, {1, 3, 1, 1, false}, {2, 3, 0, 3, true}, {2, 3, 0, 2, false}, {2, 3, 2, 1, true}} {
		g := declare(c.devices, c.wide, c.bound)
		p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), c.streams)
		require.NoError(t, err)
		a, err := Cover(p)
		if !c.fine {
			require.ErrorIs(t, err, ErrTooManyStreams)
			require.EqualError(t, err, fmt.Sprintf("cover needs %d compute streams on device 0, one for each node that can run at the same time, and %d are allowed: not enough streams", c.wide-c.bound, c.streams))
			continue
		}
		require.NoError(t, err)
		require.Len(t, a.streams, c.devices*c.wide)
	}
}

// Joins stand for many pairs of nodes: cover takes so many and no more, and none for more nodes at once than there are streams.
func TestCoverOfJoins(t *testing.T) {
	defer crowd.Early(false)()
	g := crowded(t, 1)
	require.NotEmpty(t, g.Joins())
	pairs := int64(0)
	for i := range int32(g.Len()) {
		var walk func(v dag.NodeID)
		walk = func(v dag.NodeID) {
			for _, q := range g.Preds(v) {
				if g.IsJoin(q) {
					walk(q)
				} else {
					pairs++
				}
			}
		}
		walk(dag.NodeID(i))
	}
	problem := func(streams int) *Problem {
		p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), streams)
		require.NoError(t, err)
		return p
	}
	_, err := Cover(problem(1))
	require.ErrorIs(t, err, ErrTooManyStreams)
	require.ErrorContains(t, err, "cover needs at least ")
	defer func(most int64) { mostCoveredPairs = most }(mostCoveredPairs)
	for _, c := range []struct {
		most int64
		fine bool
	}{{pairs, true}, {pairs - 1, false}} {
		mostCoveredPairs = c.most
		_, err := Cover(problem(40))
		if c.fine {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, fmt.Sprintf("cover compares up to %d pairs of nodes that depend on each other directly, this graph has more; list takes any: graph too large for the strategy", c.most))
		}
	}
}
