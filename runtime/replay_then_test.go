// Tests of ReplayThen: each replay's own result, in order, whatever finishes first; and what services rely on around it.

package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// doubler copies in to the device, doubles it and copies the result to out.
func doubler(t testing.TB) (g *dag.Graph, in, out dag.BufferID) {
	t.Helper()
	const n = 32
	b := dag.New("doubler")
	b.Use(kernels.Library())
	in, out = b.Host("in", dag.I32, n), b.Host("out", dag.I32, n)
	d := b.Device("d", dag.I32, n)
	b.Copy("up", b.Whole(d), b.Whole(in))
	b.Kernel("double", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	return g, in, out
}

func TestTurnsComeBackInOrderEachWithItsResult(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		for _, inflight := range []int{1, 3} {
			t.Run(fmt.Sprint(mode, " ", inflight), func(t *testing.T) {
				ctx := context.Background()
				g, in, out := doubler(t)
				plan, err := planner.New(ctx, g, planner.Options{})
				require.NoError(t, err)
				platform, err := host.Open(host.Options{Perturb: 7}) // queues have random delays
				require.NoError(t, err)
				defer func() { require.NoError(t, platform.Close()) }()
				program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode, Inflight: inflight})
				require.NoError(t, err)
				require.NoError(t, program.Replay(ctx)) // a plain replay before must not mix with them
				const turns = 50
				var got []uint32
				for i := range uint32(turns) {
					require.NoError(t, program.ReplayThen(ctx, func(turn *runtime.Turn) {
						require.EqualValues(t, i, turn.Number)
						require.Nil(t, turn.Host(2), "a device buffer has no host memory")
						binary.LittleEndian.PutUint32(turn.Host(in)[31*4:], i)
					}, func(turn *runtime.Turn, err error) {
						if err != nil || turn.Number != uint64(len(got)) {
							t.Errorf("turn %d came as number %d: %v", turn.Number, len(got), err)
						}
						got = append(got, binary.LittleEndian.Uint32(turn.Host(out)[31*4:]))
					}))
				}
				require.NoError(t, program.Synchronize(ctx))
				require.Len(t, got, turns)
				for i, v := range got {
					require.EqualValues(t, 2*i, v)
				}
				c := program.Counters()
				require.EqualValues(t, turns, c.TurnsFinished)
				require.EqualValues(t, turns+1, c.Replays)
				require.Zero(t, c.TurnsFailed)
				require.NoError(t, program.Close())
			})
		}
	}
}

func TestACloseWaitsForTurns(t *testing.T) {
	ctx := context.Background()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Inflight: 2})
	require.NoError(t, err)
	var numbers []uint64
	for range 5 {
		require.NoError(t, program.ReplayThen(ctx, nil, func(turn *runtime.Turn, err error) { numbers = append(numbers, turn.Number) }))
	}
	require.NoError(t, program.Close())
	require.Equal(t, []uint64{0, 1, 2, 3, 4}, numbers)
}

func TestATurnWaitsUntilItsBuffersAreRead(t *testing.T) {
	ctx := context.Background()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	reading, read := make(chan struct{}), make(chan struct{})
	require.NoError(t, program.ReplayThen(ctx, nil, func(*runtime.Turn, error) { close(reading); <-read }))
	<-reading
	gone, cancel := context.WithCancelCause(ctx)
	why := errors.New("the request went away")
	cancel(why)
	never := func(*runtime.Turn) { t.Error("the buffers are still being read") }
	require.ErrorIs(t, program.ReplayThen(gone, never, func(*runtime.Turn, error) {}), why)
	require.ErrorIs(t, program.Synchronize(gone), why)
	close(read)
	done := false
	require.NoError(t, program.ReplayThen(ctx, nil, func(*runtime.Turn, error) { done = true }))
	require.NoError(t, program.Close())
	require.True(t, done)
}

func TestAFailedTurnIsReportedAndTheRestComeInOrder(t *testing.T) {
	ctx := context.Background()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	run := func(platform *fault.Platform) (numbers []uint64, failed int, submitErr error) {
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Inflight: 2})
		if err != nil {
			return nil, 0, err
		}
		defer program.Close()
		for range 4 {
			submitErr = errors.Join(submitErr, program.ReplayThen(ctx, nil, func(turn *runtime.Turn, err error) {
				numbers = append(numbers, turn.Number)
				if err != nil {
					failed++
				}
			}))
		}
		program.Close()
		return numbers, failed, submitErr
	}
	device := cpuUnchecked(t)
	platform := fault.Wrap(device, fault.Plan{})
	numbers, _, err := run(platform)
	require.NoError(t, err)
	require.Len(t, numbers, 4)
	calls, seen := platform.Calls(), 0
	for k := range calls {
		numbers, failed, err := run(fault.Wrap(device, fault.Plan{Call: k + 1}))
		require.True(t, slices.IsSorted(numbers))
		if failed > 0 && err == nil {
			require.Len(t, numbers, 4, "call %d, %s", k+1, calls[k])
			seen++
		}
	}
	require.Positive(t, seen, "some waits of turns fail")
}

func TestTurnsAllocateNothing(t *testing.T) {
	ctx := context.Background()
	b := dag.New("copy")
	in, d := b.Host("in", dag.I32, 64), b.Device("d", dag.I32, 64)
	b.Copy("up", b.Whole(d), b.Whole(in))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpuUnchecked(t), runtime.Options{Inflight: 2})
	require.NoError(t, err)
	defer program.Close()
	before, then := func(turn *runtime.Turn) { turn.Host(in)[0]++ }, func(*runtime.Turn, error) {}
	for range 200 {
		require.NoError(t, program.ReplayThen(ctx, before, then))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if program.ReplayThen(ctx, before, then) != nil {
			t.Error("a turn failed")
		}
	}))
}
