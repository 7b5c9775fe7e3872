// Tests of loops and branches on a GPU: random nests give the same bits and the same passes as streams and as graphs, and as in plain Go.

package gpu

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/tests/nests"
)

func TestNestsOfLoopsAndBranches(t *testing.T) {
	ctx, platform := context.Background(), open(t)
	count := uint64(200)
	if testing.Short() {
		count = 40
	}
	graphs := 0
	for seed := range count {
		nest := nests.New(rand.New(rand.NewPCG(seed, 8)))
		g, err := nest.Graph()
		require.NoError(t, err)
		var counted []runtime.Loop
		for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
			plan, err := planner.New(ctx, g, planner.Options{Streams: 1 + int(seed%4)})
			require.NoError(t, err)
			program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
			require.NoError(t, err, "seed %d, %s", seed, mode)
			require.Equal(t, mode, program.Mode(), "seed %d: %s", seed, program.NoGraph())
			require.NoError(t, program.Run(ctx, 2))
			id, _ := program.Buffer("out")
			memory := make([]byte, g.Buffers[id].Bytes)
			require.NoError(t, program.Read(ctx, id, memory))
			require.Equal(t, nest.Out(), memory, "seed %d, %s", seed, mode)
			loops, err := program.Loops(ctx)
			require.NoError(t, err)
			if mode == runtime.Streams {
				counted = loops
			} else if g.HasControl() {
				graphs++
			}
			require.Equal(t, counted, loops, "seed %d, %s", seed, mode)
			require.NoError(t, program.Close())
		}
	}
	t.Logf("%d graphs with loops or branches", graphs)
}

func TestLoopsAreUpdated(t *testing.T) {
	ctx, platform := context.Background(), open(t)
	b := dag.New("countdown")
	b.Use(kernels.Library())
	x, y := b.Device("x", dag.F64, 1), b.Device("y", dag.F64, 1)
	for _, buffer := range []dag.BufferID{x, y} {
		b.Init(buffer, dag.Init{Kind: dag.InitValue, Value: expr.Int(1000)})
	}
	b.Kernel("beside", "scale", dag.Args{1, 0.5, b.Whole(y)})
	b.Repeat("halve", dag.Loop{Until: "x < 1", Most: 50}, func() { b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)}) })
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{KeepAll: true})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: runtime.Captured})
	require.NoError(t, err)
	require.Equal(t, runtime.Captured, program.Mode(), program.NoGraph())
	check := func(passes int64, value float64) {
		require.NoError(t, program.Restore(ctx))
		require.NoError(t, program.Run(ctx, 1))
		loops, err := program.Loops(ctx)
		require.NoError(t, err)
		require.Equal(t, passes, loops[0].Passes)
		memory := make([]byte, 8)
		require.NoError(t, program.Read(ctx, y, memory))
		require.Equal(t, value, dag.F64.ToFloat(dag.F64.Load(memory, 0)))
	}
	check(10, 500)
	require.NoError(t, program.SetScalar("beside", 1, 0.25), "a kernel beside the loop")
	check(10, 250)
	require.NoError(t, program.SetScalar("half", 1, 0.25), "a kernel in the loop")
	check(5, 250)
	other, err := platform.Alloc(0, 8)
	require.NoError(t, err)
	require.NoError(t, program.SetStorage("x", other, 8))
	check(5, 250)
	require.NoError(t, program.Close())
	require.NoError(t, platform.Free(other))
}
