// End-to-end tests of programs on the CPU device.

package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// saxpy is two uploads, a kernel and a download of n elements: out = 2x + y.
func saxpy(t *testing.T, n int64) *dag.Graph {
	t.Helper()
	b := dag.New("saxpy")
	b.Use(kernels.Library())
	x, y, out := b.Host("x", dag.F32, n), b.Host("y", dag.F32, n), b.Host("out", dag.F32, n)
	dx, dy := b.Device("d_x", dag.F32, n), b.Device("d_y", dag.F32, n)
	b.Init(x, dag.Init{Kind: dag.InitRamp, B: 0.5})
	b.Init(y, dag.Init{Kind: dag.InitValue, Value: expr.Int(1)})
	want, err := expr.Parse("i + 1")
	require.NoError(t, err)
	b.Expect(out, dag.Expect{Kind: dag.ExpectExpr, Expr: want})
	b.Copy("up_x", b.Whole(dx), b.Whole(x))
	b.Copy("up_y", b.Whole(dy), b.Whole(y))
	b.Kernel("saxpy", "saxpy", dag.Args{n, 2.0, b.Whole(dx), b.Whole(dy)})
	b.Copy("down", b.Whole(out), b.Whole(dy))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func cpu(t *testing.T) *host.Platform {
	t.Helper()
	p, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Equal(t, cudart.Live{}, p.Live())
		require.NoError(t, p.Close())
	})
	return p
}

func TestSaxpyGivesTheExpectedResultInEveryMode(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built, runtime.Auto} {
		t.Run(mode.String(), func(t *testing.T) {
			g := saxpy(t, 1000)
			plan, err := planner.New(context.Background(), g, planner.Options{})
			require.NoError(t, err)
			platform := cpu(t)
			program, err := runtime.New(context.Background(), g, plan, platform, runtime.Options{Mode: mode})
			require.NoError(t, err)
			require.NoError(t, program.Run(context.Background(), 3))
			results, err := program.Finish(context.Background())
			require.NoError(t, err)
			require.Empty(t, results.Failed())
			require.Len(t, results.Checks, 1)
			require.EqualValues(t, 1000, results.Checks[0].Elements)
			require.NoError(t, program.Close())
		})
	}
}
