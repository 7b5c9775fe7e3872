// Tests of updates: changed scalars and storage take effect at the next replay in every mode; changes not covered by the proof are refused.

package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func TestUpdatedScalarsAndStorageAreUsed(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := context.Background()
			g := saxpy(t, 100)
			plan, err := planner.New(ctx, g, planner.Options{KeepAll: true})
			require.NoError(t, err)
			platform := cpu(t)
			program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
			require.NoError(t, err)
			defer program.Close()
			element := func(i int64) float64 {
				require.NoError(t, program.Run(ctx, 1))
				id, _ := program.Buffer("out")
				memory := make([]byte, 400)
				require.NoError(t, program.Read(ctx, id, memory))
				return dag.F32.ToFloat(dag.F32.Load(memory, i))
			}
			require.Equal(t, 100.0, element(99)) // 2 * 49.5 + 1
			require.NoError(t, program.SetScalar("saxpy", 1, 4))
			require.Equal(t, 199.0, element(99))
			require.NoError(t, program.SetScalar("saxpy", 0, 50)) // the second half is not touched
			require.Equal(t, 99.0, element(49))
			require.Equal(t, 1.0, element(99))
			require.NoError(t, program.SetScalar("saxpy", 0, 100))

			other, err := platform.Alloc(0, 400)
			require.NoError(t, err)
			require.NoError(t, program.SetStorage("d_y", other, 400))
			require.Equal(t, 199.0, element(99))
			require.NoError(t, program.Close())
			require.NoError(t, platform.Free(other))
			require.Equal(t, 2.0, g.Nodes[2].Launch.Args[1].DType.ToFloat(g.Nodes[2].Launch.Args[1].Bits), "the graph itself stays as declared")
		})
	}
}

func TestUpdatesThatTheProofDoesNotCoverAreRefused(t *testing.T) {
	ctx := context.Background()
	g := saxpy(t, 100)
	plan, err := planner.New(ctx, g, planner.Options{KeepAll: true})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	for _, c := range []struct {
		err  error
		want string
	}{
		{program.SetScalar("saxpi", 0, 1), `update refused: the pipeline has no node "saxpi"`},
		{program.SetScalar("up_x", 0, 1), `update refused: node "up_x" is a memcpy, not a kernel`},
		{program.SetScalar("saxpy", 2, 1), `update refused: argument 2 of node "saxpy" is not a scalar`},
		{program.SetScalar("saxpy", 9, 1), `update refused: argument 9 of node "saxpy" is not a scalar`},
		{program.SetScalar("saxpy", 0, 1.5), `update refused: argument 0 of node "saxpy" is an integer (i64), not 1.5`},
		{program.SetScalar("saxpy", 0, 101), `update refused: node "saxpy": argument x needs 101 elements (n), but its slice has only 100`},
		{program.SetStorage("d_z", 4096, 400), `update refused: the pipeline has no buffer "d_z"`},
		{program.SetStorage("d_x", 4096, 404), `update refused: buffer "d_x" has 400 bytes, but the memory has 404`},
	} {
		require.ErrorIs(t, c.err, runtime.ErrUpdate)
		require.EqualError(t, c.err, c.want)
	}
}

func TestUpdatesMayNotWidenWhatWasDeclared(t *testing.T) {
	ctx := context.Background()
	for _, from := range []int64{0, 10} {
		b := dag.New("half")
		b.Use(kernels.Library())
		d := b.Device("d", dag.F32, 110)
		b.Kernel("scale", "scale", dag.Args{50, 2, b.Slice(d, from, 110)}) // declares no more than that
		g, err := b.Graph()
		require.NoError(t, err)
		plan, err := planner.New(ctx, g, planner.Options{})
		require.NoError(t, err)
		program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
		require.NoError(t, err)
		defer program.Close()
		require.NoError(t, program.SetScalar("scale", 0, 20))
		require.NoError(t, program.SetScalar("scale", 0, 50))
		require.EqualError(t, program.SetScalar("scale", 0, 51), `update refused: node "scale" would touch 204 bytes of "d", but its declaration covers only 200`)
	}
}

// How long the rows of a tile are follows from the tile.
func TestRowLengthsAreNoScalars(t *testing.T) {
	b := dag.New("tiles")
	b.Use(kernels.Library())
	x, y := b.Device("x", dag.F32, 8, 8), b.Device("y", dag.F32, 4, 4)
	b.Kernel("turn", "transpose", dag.Args{4, 4, b.Tile(x, 0, 4, 0, 4), b.Whole(y)})
	g, err := b.Graph()
	require.NoError(t, err)
	params := g.Nodes[0].Launch.Kernel.Params()
	require.Len(t, params, 6)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	for k := range params {
		if err := program.SetScalar("turn", k, 4); params[k].LengthOf > 0 || params[k].Buffer {
			require.EqualError(t, err, fmt.Sprintf(`update refused: argument %d of node "turn" is not a scalar`, k))
		} else {
			require.NoError(t, err)
		}
	}
}

// The code of a form is loaded, so an update may not need another one.
func TestUpdatesStayWithinTheFormOfAKernel(t *testing.T) {
	ctx := context.Background()
	b := dag.New("product")
	b.Use(kernels.Library())
	x, y, z := b.Device("x", dag.F32, 4, 4), b.Device("y", dag.F32, 4, 20), b.Device("z", dag.F32, 4, 20)
	b.Kernel("mm", "matmul", dag.Args{0, 0, 4, 16, 4, b.Whole(x), b.Whole(y), b.Whole(z)})
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, program.SetScalar("mm", 3, 5))
	require.NoError(t, program.Run(ctx, 1))
	require.EqualError(t, program.SetScalar("mm", 3, 17), `update refused: node "mm": argument n is 17, but this form of the kernel computes at most 16 columns`)
}
