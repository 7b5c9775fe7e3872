// Plans under a memory cap: they fit and are right, or say what does not fit.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/stretchr/testify/require"
)

// cappedPlan plans with the list strategy.
func cappedPlan(tb testing.TB, g *dag.Graph, o Options) (*Plan, error) {
	tb.Helper()
	o.Strategy = "list"
	return New(context.Background(), g, o)
}

func TestMemoryCapIsKept(t *testing.T) {
	fewer := 0
	for family := range families {
		g := randomShape(family, 50, 3).graph(t)
		free, err := cappedPlan(t, g, Options{Streams: 8})
		require.NoError(t, err)
		for _, part := range []float64{0.8, 0.6} {
			limit := int64(part*float64(free.Stats.PeakDeviceBytes)) &^ 255
			p, err := cappedPlan(t, g, Options{Streams: 8, MemoryCap: limit})
			if err != nil {
				var e *MemoryCapError
				require.ErrorAs(t, err, &e)
				require.ErrorIs(t, err, ErrMemoryCap)
				require.Equal(t, limit, e.Cap)
				require.Greater(t, e.Needed, limit)
				require.LessOrEqual(t, e.Needed, free.Stats.PeakDeviceBytes)
				require.NotEmpty(t, e.Live)
				t.Logf("%s at %.1f: %v", families[family].name, part, err)
				continue
			}
			fewer++
			require.LessOrEqual(t, p.Stats.PeakDeviceBytes, limit)
			require.NoError(t, Verify(g, p))
		}
	}
	require.Greater(t, fewer, 12, "most of these fit with fewer things at once")
}

// Sixteen branches that each need a large buffer for a moment: one after the other they fit where all at once they do not.
func TestMemoryCapOrdersBranches(t *testing.T) {
	b := dag.New("branches")
	for i := range 16 {
		large, small := b.Device(fmt.Sprintf("large%d", i), dag.U8, 1<<20), b.Device(fmt.Sprintf("small%d", i), dag.U8, 256)
		b.Task(fmt.Sprintf("expand%d", i), b.Out(large))
		b.Task(fmt.Sprintf("reduce%d", i), b.In(large), b.Out(small))
		b.Task(fmt.Sprintf("keep%d", i), b.InOut(small))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	free, err := cappedPlan(t, g, Options{Streams: 8})
	require.NoError(t, err)
	require.GreaterOrEqual(t, free.Stats.PeakDeviceBytes, int64(4<<20))
	p, err := cappedPlan(t, g, Options{Streams: 8, MemoryCap: 2<<20 + 16*256})
	require.NoError(t, err)
	require.LessOrEqual(t, p.Stats.PeakDeviceBytes, int64(2<<20+16*256))
	require.Greater(t, len(p.Streams), 1, "two branches at a time fit")
	_, err = cappedPlan(t, g, Options{Streams: 8, MemoryCap: 1 << 19})
	require.EqualError(t, err, `device 0 needs 1 MiB, 512.25 KiB more than the memory cap of 512 KiB; alive at once at "reduce15": "large15" (1 MiB), "small15" (256 bytes)`)
}

func TestMemoryCapBelowWhatIsKept(t *testing.T) {
	b := dag.New("kept")
	w := b.Device("weights", dag.F32, 1<<20)
	x := b.Device("x", dag.F32, 1<<10)
	b.BufferAt(w).Init = &dag.Init{}
	b.Task("make", b.In(w), b.Out(x))
	b.Task("use", b.In(x))
	g, err := b.Graph()
	require.NoError(t, err)
	_, err = cappedPlan(t, g, Options{Streams: 2, MemoryCap: 1 << 20})
	require.ErrorIs(t, err, ErrMemoryCap)
	require.EqualError(t, err, `device 0 needs 4 MiB, 3 MiB more than the memory cap of 1 MiB; alive at once at "make": "weights" (4 MiB, kept throughout), "x" (4 KiB)`)
	p, err := cappedPlan(t, g, Options{Streams: 2, MemoryCap: 4<<20 + 4<<10})
	require.NoError(t, err)
	peaks, err := PeakBuffers(g, p)
	require.NoError(t, err)
	require.Equal(t, []Peak{{Device: 0, Arena: 4<<20 + 4<<10, Live: 4<<20 + 4<<10, Node: 0, Buffers: []LiveBuffer{{0, "weights", 4 << 20, true}, {1, "x", 4 << 10, false}}}}, peaks)
}

// bruteOrder is the lowest peak of any serial order, over all sets of nodes.
func bruteOrder(f *frugal) int64 {
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

func TestFrugalOrderIsTheLowestOnSmallGraphs(t *testing.T) {
	equal, all, declared := 0, 0, 0
	for family := range families {
		for seed := range uint64(4) {
			g := randomShape(family, 9, seed).graph(t)
			if g.Len() > 12 {
				continue
			}
			p, err := newProblem(context.Background(), g, H200(), Durations(g, H200(), nil), 1)
			require.NoError(t, err)
			f := newFrugal(p, sharingBuffers(g))
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
