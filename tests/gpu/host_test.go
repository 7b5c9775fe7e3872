// Tests of host functions on a GPU: as streams and as graphs, several replays in flight, and failures.

package gpu

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func TestHostFunctions(t *testing.T) {
	const n = 1 << 16
	ctx, platform := context.Background(), open(t)
	b := dag.New("hosted")
	b.Use(kernels.Library())
	x, y, out := b.Host("x", dag.F32, n), b.Host("y", dag.F32, n), b.Host("out", dag.F32, n)
	d := b.Device("d", dag.F32, n)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(3)})
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Kernel("double", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("middle", b.Whole(y), b.Whole(d))
	b.HostFunction("add.left", "add", b.Slice(y, 0, n/2).InOut())
	b.HostFunction("add.right", "add", b.Slice(y, n/2, n).InOut())
	b.Copy("again", b.Whole(d), b.Whole(y))
	b.Kernel("double.again", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("down", b.Whole(out), b.Whole(d))
	b.Expect(out, dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(14)})
	g, err := b.Graph()
	require.NoError(t, err)
	boom := errors.New("boom")
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		for _, inflight := range []int{1, 3} {
			var calls atomic.Int64
			failAt := int64(-1)
			functions := map[string]runtime.HostFunction{"add": func(_ context.Context, c *runtime.HostCall) error {
				calls.Add(1)
				memory := c.Buffer("y")
				for i := range int64(len(memory) / 4) {
					dag.F32.Store(memory, i, dag.F32.FromFloat(1+dag.F32.ToFloat(dag.F32.Load(memory, i))))
				}
				if int64(c.Replay) == failAt {
					panic(boom)
				}
				return nil
			}}
			plan, err := planner.New(ctx, g, planner.Options{Streams: 3})
			require.NoError(t, err)
			program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode, Inflight: inflight, Functions: functions})
			require.NoError(t, err)
			require.NoError(t, program.Run(ctx, 20))
			results, err := program.Finish(ctx)
			require.NoError(t, err)
			require.Empty(t, results.Failed(), "%s, %d in flight", mode, inflight)
			require.Equal(t, int64(40), calls.Load())
			failAt = 22
			err = program.Run(ctx, 10)
			require.ErrorIs(t, err, boom)
			var failure *runtime.HostError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, "add.left", failure.Node)
			require.LessOrEqual(t, calls.Load(), int64(2*(23+inflight)))
			require.NoError(t, program.Close())
		}
	}
}

// A loop whose body runs a host function is replayed as streams.
func TestHostFunctionsInLoops(t *testing.T) {
	ctx, platform := context.Background(), open(t)
	b := dag.New("loop")
	b.Use(kernels.Library())
	x, d := b.Host("x", dag.F64, 1), b.Device("d", dag.F64, 1)
	for _, buffer := range []dag.BufferID{x, d} {
		b.Init(buffer, dag.Init{Kind: dag.InitValue, Value: expr.Int(1000)})
	}
	b.Repeat("loop", dag.Loop{Until: "d < 1", Most: 50}, func() {
		b.HostFunction("halve", "halve", b.InOut(x))
		b.Copy("up", b.Whole(d), b.Whole(x))
	})
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: runtime.Captured, Functions: map[string]runtime.HostFunction{
		"halve": func(_ context.Context, c *runtime.HostCall) error {
			dag.F64.Store(c.Bytes(0), 0, dag.F64.FromFloat(dag.F64.ToFloat(dag.F64.Load(c.Bytes(0), 0))/2))
			return nil
		}}})
	require.NoError(t, err)
	require.NoError(t, program.Run(ctx, 1))
	require.Contains(t, program.NoGraph(), `"halve"`)
	loops, err := program.Loops(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(10), loops[0].Passes)
	require.NoError(t, program.Close())
}
