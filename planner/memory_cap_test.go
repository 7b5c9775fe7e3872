// Tests of plans under a memory cap: they fit and are correct, or the error says what does not fit.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// cappedPlan plans with the list strategy.
func cappedPlan(tb testing.TB, g *dag.Graph, o Options) (*Plan, error) {
	tb.Helper()
	o.Strategy = "list"
	return New(context.Background(), g, o)
}

func TestMemoryCapIsKept(t *testing.T) {
	fewer := 0
	for family := range plantest.Families {
		g := plantest.RandomShape(family, 50, 3).Graph(t)
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
				t.Logf("%s at %.1f: %v", plantest.Families[family].Name, part, err)
				continue
			}
			fewer++
			require.LessOrEqual(t, p.Stats.PeakDeviceBytes, limit)
			require.NoError(t, Verify(g, p))
		}
	}
	require.Greater(t, fewer, 12, "most of these fit with fewer things at once")
}

// Sixteen branches each need a large buffer for a short time: they fit one after the other, but not all at once.
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
	require.EqualError(t, err, `device 0 needs at least 1 MiB, 512.25 KiB more than the memory cap of 512 KiB, in every plan; alive at once at "reduce0": "large0" (1 MiB), "small0" (256 bytes)`)
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
	require.EqualError(t, err, `device 0 needs at least 4 MiB, 3 MiB more than the memory cap of 1 MiB, in every plan; alive at once at "make": "weights" (4 MiB, kept throughout), "x" (4 KiB)`)
	p, err := cappedPlan(t, g, Options{Streams: 2, MemoryCap: 4<<20 + 4<<10})
	require.NoError(t, err)
	peaks, err := PeakBuffers(g, p)
	require.NoError(t, err)
	require.Equal(t, []plan.Peak{{Device: 0, Arena: 4<<20 + 4<<10, Live: 4<<20 + 4<<10, Node: 0, Buffers: []plan.LiveBuffer{{Buffer: 0, Name: "weights", Bytes: 4 << 20, Kept: true}, {Buffer: 1, Name: "x", Bytes: 4 << 10, Kept: false}}}}, peaks)
}
