// Tests of memory use over a predicted run: by hand, and against the layout. Does not judge layouts.

package planner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
)

func TestOccupancyByHand(t *testing.T) {
	b := dag.New("memory")
	in := b.Host("in", dag.F32, 64)
	kept := b.Device("kept", dag.F32, 64)
	b.Save(kept, "kept.npy")
	first, second, other := b.Device("first", dag.F32, 128), b.Device("second", dag.F32, 1), b.Device("other", dag.F32, 64)
	b.OnDevice(other, 1)
	b.Copy("up", b.Slice(first, 0, 64), b.Whole(in))
	b.Cost(b.Task("one", b.In(first), b.Out(second)), 5)
	b.Cost(b.Task("two", b.In(second), b.Out(kept)), 7)
	b.Copy("across", b.Whole(other), b.Whole(kept))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := New(context.Background(), g, Options{Strategy: "serial", Machine: Unit()})
	require.NoError(t, err)
	timeline, err := Simulate(g, plan, Unit(), nil)
	require.NoError(t, err)
	all := model.OccupancyOf(g, plan, timeline)
	require.Len(t, all, 2)
	require.Equal(t, int32(0), all[0].Device)
	require.GreaterOrEqual(t, all[0].Kept, int64(256))
	for _, o := range all {
		require.Equal(t, 0.0, o.Steps[0].US)
		for k, s := range o.Steps {
			require.GreaterOrEqual(t, s.Bytes, o.Kept)
			require.LessOrEqual(t, s.Bytes, o.Arena, "no layout is smaller than what is alive at once")
			require.Equal(t, int64(0), s.Bytes%256)
			if k > 0 {
				require.Greater(t, s.US, o.Steps[k-1].US)
			}
		}
		require.Equal(t, o.Kept, o.Steps[len(o.Steps)-1].Bytes, "at the end only what is kept is alive")
	}
}
