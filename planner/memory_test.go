// Tests of laws that memory layouts obey for all options.

package planner

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

func TestLayoutIsSound(t *testing.T) {
	saved := false
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 16, false)
		for i := range g.Buffers {
			if rapid.IntRange(0, 9).Draw(t, "init") == 0 {
				g.Buffers[i].Init = &dag.Init{}
			}
		}
		p := plantest.DrawDullPlan(t, g, 4)
		o := Options{KeepAll: rapid.IntRange(0, 9).Draw(t, "keep all") == 9}
		if rapid.Bool().Draw(t, "keep") {
			o.Keep = []dag.BufferID{0}
		}
		require.NoError(t, LayoutMemory(context.Background(), g, p, o))
		require.NoError(t, Verify(g, p))
		require.True(t, plantest.BruteRight(g, p))
		require.LessOrEqual(t, p.Stats.PeakDeviceBytes, p.Stats.SumDeviceBytes)
		saved = saved || p.Stats.PeakDeviceBytes < p.Stats.SumDeviceBytes
		for k, m := range p.Memory {
			for _, q := range p.Memory[:k] {
				if m.Offset < q.Offset+q.Bytes && q.Offset < m.Offset+m.Bytes {
					require.False(t, o.KeepAll)
					require.False(t, slices.Contains(o.Keep, q.Buffer) || slices.Contains(o.Keep, m.Buffer))
				}
			}
		}
		again := plantest.ClonePlan(p)
		require.NoError(t, LayoutMemory(context.Background(), g, again, o))
		require.Equal(t, p, again)
	})
	require.True(t, saved)
}

func TestLayoutOfDevices(t *testing.T) {
	b := dag.New("devices")
	for d := range int32(2) {
		for i := range 2 {
			b.Buffer(dag.Buffer{Name: fmt.Sprintf("d%d_%d", d, i), Place: dag.Device, Device: d, DType: dag.U8, Shape: []int64{1000}})
		}
	}
	b.Host("h", dag.U8, 1000)
	for i := range int32(4) {
		b.At(b.Task(fmt.Sprintf("make%d", i), b.Out(dag.BufferID(i)))).Device = i / 2
		b.At(b.Task(fmt.Sprintf("use%d", i), b.In(dag.BufferID(i)))).Device = i / 2
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{Streams: []plan.Stream{{Device: 0}, {Device: 1}}}
	for i := range int32(8) {
		p.Streams[i/4].Ops = append(p.Streams[i/4].Ops, plan.Op{Kind: plan.Launch, Node: dag.NodeID(i), Event: -1})
		p.Order = append(p.Order, i/4)
	}
	require.NoError(t, LayoutMemory(context.Background(), g, p, Options{}))
	require.Equal(t, []plan.Placement{{Buffer: 0, Device: 0, Offset: 0, Bytes: 1000}, {Buffer: 1, Device: 0, Offset: 0, Bytes: 1000}, {Buffer: 2, Device: 1, Offset: 0, Bytes: 1000}, {Buffer: 3, Device: 1, Offset: 0, Bytes: 1000}}, p.Memory)
	require.Equal(t, int64(2048), p.Stats.PeakDeviceBytes)
	require.Equal(t, int64(4096), p.Stats.SumDeviceBytes)
	require.NoError(t, Verify(g, p))
	require.ErrorIs(t, LayoutMemory(context.Background(), g, p, Options{Keep: []dag.BufferID{9}}), place.ErrBadOption)

	p.Streams[1].Device = 0
	require.ErrorIs(t, LayoutMemory(context.Background(), g, p, Options{}), proof.ErrWrongStream)
}

// When its context ends, the search ends too, and the layout it returns is still correct.
func TestLayoutMemoryEndsWithItsContext(t *testing.T) {
	g := plantest.RandomShape(0, 400, 3).Graph(t)
	p, err := New(context.Background(), g, Options{Streams: 8})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, LayoutMemory(ended, g, p, Options{Effort: Thorough}), context.Canceled)
	require.NoError(t, Verify(g, p))
}
