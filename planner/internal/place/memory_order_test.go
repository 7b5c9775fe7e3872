// Tests of orders that keep few bytes alive, against all orders of small graphs.

package place

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

// bruteOrder returns the lowest peak of all serial orders, computed over all sets of nodes.
func bruteOrder(f *memoryGraph) int64 {
	n := f.p.len()
	const none = int64(1) << 62
	lowest := make([]int64, 1<<n)
	for set := range lowest {
		lowest[set] = none
	}
	lowest[0] = 0
	for set := range lowest {
		if lowest[set] == none {
			continue
		}
		live := int64(0)
		users := make([]int32, len(f.users))
		for i := range n {
			if set>>i&1 == 1 {
				for _, k := range f.usesOf(int32(i)) {
					users[k]++
				}
			}
		}
		for k, u := range users {
			if u > 0 && u < f.users[k] {
				live += f.bytes[k]
			}
		}
		for i := range n {
			ready := set>>i&1 == 0
			for _, q := range f.preds.pred[f.preds.predStart[i]:f.preds.predStart[i+1]] {
				ready = ready && set>>q&1 == 1
			}
			if !ready {
				continue
			}
			take := int64(0)
			for _, k := range f.usesOf(int32(i)) {
				if users[k] == 0 {
					take += f.bytes[k]
				}
			}
			lowest[set|1<<i] = min(lowest[set|1<<i], max(lowest[set], live+take))
		}
	}
	return lowest[1<<n-1]
}

func TestOrderOfFewestBytesIsTheLowestOnSmallGraphs(t *testing.T) {
	equal, all, declared := 0, 0, 0
	for family := range plantest.Families {
		for seed := range uint64(4) {
			g := plantest.RandomShape(family, 9, seed).Graph(t)
			if g.Len() > 12 {
				continue
			}
			p, err := NewProblem(context.Background(), g, model.H200(), model.Durations(g, model.H200(), nil), 1)
			require.NoError(t, err)
			f := newMemoryGraph(p, deviceBuffers(g))
			order := f.order()
			require.Len(t, order, g.Len())
			place := make([]int, g.Len())
			for k, i := range order {
				place[i] = k
			}
			for _, e := range g.Edges() {
				require.Less(t, place[e.From], place[e.To])
			}
			all++
			best := bruteOrder(f)
			require.GreaterOrEqual(t, f.peak(order), best)
			if f.peak(order) == best {
				equal++
			}
			if f.peak(p.order) == best {
				declared++
			}
		}
	}
	t.Logf("%d of %d orders are the lowest, %d as declared", equal, all, declared)
	require.Greater(t, all, 30)
	require.Equal(t, all, equal)
}

// deviceBuffers returns the buffers on devices.
func deviceBuffers(g *dag.Graph) []int32 {
	var buffers []int32
	for i := range g.Buffers {
		if g.Buffers[i].Place == dag.Device {
			buffers = append(buffers, int32(i))
		}
	}
	return buffers
}

// Of the nodes that are ready, the greedy order takes one after which the fewest bytes are alive, and of those one that allocates the fewest.
func TestTheGreedyOrderKeepsTheFewestBytesAliveAtEachStep(t *testing.T) {
	choices := 0
	for family := range plantest.Families {
		for seed := range uint64(4) {
			g := plantest.RandomShape(family, 20, seed).Graph(t)
			p, err := NewProblem(context.Background(), g, model.H200(), model.Durations(g, model.H200(), nil), 1)
			require.NoError(t, err)
			f := newMemoryGraph(p, deviceBuffers(g))
			used, done := make([]int32, len(f.users)), make([]bool, g.Len())
			cost := func(i int32) [2]int64 { // more bytes alive, bytes allocated
				more, take := int64(0), int64(0)
				for _, k := range f.usesOf(i) {
					if used[k] == 0 {
						take += f.bytes[k]
						more += f.bytes[k]
					}
					if used[k]+1 == f.users[k] {
						more -= f.bytes[k]
					}
				}
				return [2]int64{more, take}
			}
			for _, chosen := range f.greedy() {
				for i := range int32(g.Len()) {
					ready := !done[i]
					for _, q := range g.Preds(dag.NodeID(i)) {
						ready = ready && done[q]
					}
					if !ready || i == chosen {
						continue
					}
					choices++
					a, b := cost(chosen), cost(i)
					require.True(t, a[0] < b[0] || a[0] == b[0] && a[1] <= b[1], "%v for %d, %v for %d", a, chosen, b, i)
				}
				for _, k := range f.usesOf(chosen) {
					used[k]++
				}
				done[chosen] = true
			}
		}
	}
	require.Greater(t, choices, 1000)
}
