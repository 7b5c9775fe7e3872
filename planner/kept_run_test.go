// Tests that no program runs on a memory layout that does not keep a buffer which must be kept, from declaration to device.

package planner_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

// Each replay adds 1 to a sum that only the device holds, and then fills a buffer with 7. If both had the same bytes, every replay
// after the first would start from 7, and the sum would be 8 instead of 3.
func TestNoProgramRunsWithACarriedBufferThatIsNotKept(t *testing.T) {
	ctx := context.Background()
	b := dag.New("carried")
	b.Use(kernels.Library())
	result, other := b.Host("result", dag.I32, 4), b.Host("other", dag.I32, 4)
	sum, ones, sevens := b.Device("sum", dag.I32, 4), b.Device("ones", dag.I32, 4), b.Device("sevens", dag.I32, 4)
	b.Init(ones, dag.Init{Kind: dag.InitRamp, A: 1})
	b.Kernel("add", "add", dag.Args{4, b.Whole(sum), b.Whole(ones), b.Whole(sum)})
	b.Copy("down", b.Whole(result), b.Whole(sum))
	b.Kernel("fill", "fill", dag.Args{4, 7, b.Whole(sevens)})
	b.Copy("again", b.Whole(other), b.Whole(sevens))
	g, err := b.Graph()
	require.NoError(t, err)
	right, err := planner.New(ctx, g, planner.Options{Strategy: "serial"})
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{sum, ones}, right.Kept)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()

	program, err := runtime.New(ctx, g, right, platform, runtime.Options{})
	require.NoError(t, err)
	require.NoError(t, program.Run(ctx, 3))
	require.EqualValues(t, 3, binary.LittleEndian.Uint32(program.Host(result)))
	require.NoError(t, program.Close())

	// With the fault switched on, the layout puts the sum and the sevens on the same bytes and keeps only the ones.
	wrong := *right
	wrong.Memory, wrong.Kept = slices.Clone(right.Memory), slices.Clone(right.Kept)
	remove := planted.Plant(planted.Kept)
	defer remove()
	const refused = `"sum" is read before it is written, but the plan does not keep its bytes: plan this graph again`
	_, err = planner.New(ctx, g, planner.Options{Strategy: "serial"})
	require.ErrorContains(t, err, refused)
	_ = planner.LayoutMemory(context.Background(), g, &wrong, planner.Options{})
	require.Equal(t, []dag.BufferID{ones}, wrong.Kept)
	offset := func(buffer dag.BufferID) int64 {
		return wrong.Memory[slices.IndexFunc(wrong.Memory, func(m plan.Placement) bool { return m.Buffer == buffer })].Offset
	}
	require.Equal(t, offset(sum), offset(sevens))
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		_, err := runtime.New(ctx, g, &wrong, platform, runtime.Options{Mode: mode})
		require.EqualError(t, err, refused)
		require.ErrorIs(t, err, plan.ErrMemory)
		require.Equal(t, cudart.Live{}, platform.Live(), "nothing was made for a plan that is wrong")
	}
}
