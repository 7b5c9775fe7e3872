// Tests of finding the node of a fault: the one that ran alone when the device failed, or that never ended.

package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// faulty has a user's kernel, named run, between two copies.
func faulty(t *testing.T, run func()) (*dag.Graph, *planner.Plan) {
	t.Helper()
	const source = `extern "C" __global__ void touch(float* x) { x[0] = 1; }`
	module, err := kernels.OpenModule("mine", "mine.cu", []byte(source), kernels.OpenOptions{References: map[string]launch.Reference{
		"touch": {Spans: func(*launch.Call) int64 { return 1 }, Run: func(*launch.Call, int64, int64) { run() }},
	}})
	require.NoError(t, err)
	b := dag.New("faulty")
	b.Use(kernels.Library())
	b.Module("mine", "mine.cu", module)
	in, out, d := b.Host("in", dag.F32, 8), b.Host("out", dag.F32, 8), b.Device("d", dag.F32, 8)
	b.Copy("up", b.Whole(d), b.Whole(in))
	b.Kernel("touch", "mine.touch", dag.Args{b.InOut(d)}, dag.Grid(1), dag.Block(1))
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	return g, plan
}

func TestAFaultIsThatOfTheNodeThatRanAlone(t *testing.T) {
	ctx := context.Background()
	calls := 0
	g, plan := faulty(t, func() {
		if calls++; calls == 3 {
			panic("out of luck")
		}
	})
	program, err := runtime.New(ctx, g, plan, cpuUnchecked(t), runtime.Options{Inflight: 2})
	require.NoError(t, err)
	err = program.RunAlone(ctx, 5)
	var node *runtime.NodeError
	require.ErrorAs(t, err, &node)
	require.Equal(t, "touch", node.Node)
	require.Equal(t, 2, node.Replay)
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	message, _, _ := strings.Cut(err.Error(), "\n") // the rest is the stack of the kernel's Go version
	require.Equal(t, `node "touch" (stream 0): cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure: panic: out of luck`, message)
	require.NoError(t, program.Close(), "a broken device was told of already")
}

func TestANodeThatNeverEndsIsNamed(t *testing.T) {
	running, end := make(chan struct{}), make(chan struct{})
	g, plan := faulty(t, func() { close(running); <-end })
	program, err := runtime.New(context.Background(), g, plan, cpuUnchecked(t), runtime.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	late := errors.New("too late")
	go func() { <-running; cancel(late) }()
	err = program.RunAlone(ctx, 1)
	var node *runtime.NodeError
	require.ErrorAs(t, err, &node)
	require.Equal(t, "touch", node.Node)
	close(end)
	require.NoError(t, program.Close())
}

func TestRunningAloneGivesTheSameResult(t *testing.T) {
	ctx := context.Background()
	g := counter(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, program.RunAlone(ctx, 4))
	id, _ := program.Buffer("out")
	memory := make([]byte, 16)
	require.NoError(t, program.Read(ctx, id, memory))
	require.EqualValues(t, 4, dag.I32.Load(memory, 0))
}
