// Tests of mistakes of callers: every method returns an error, and none waits longer than its context.

package runtime_test

import (
	"context"
	"io"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

func TestBadArgumentsAreErrors(t *testing.T) {
	ctx := t.Context()
	g := saxpy(t, 64)
	made, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	platform := cpu(t)

	for want, options := range map[string]runtime.Options{
		"unknown mode: Mode(9)":                                   {Mode: 9},
		"unknown memory mode: MemoryMode(7)":                      {Memory: 7},
		"-1 threads: the number must be 1 to 1024":                {Threads: -1},
		"1000000000 threads: the number must be 1 to 1024":        {Threads: 1e9},
		"-2 replays in flight: the number must be 1 to 1024":      {Inflight: -2},
		"1000000 replays in flight: the number must be 1 to 1024": {Inflight: 1e6},
	} {
		_, err := runtime.New(ctx, g, made, platform, options)
		require.EqualError(t, err, want)
	}
	_, err = runtime.New(ctx, nil, made, platform, runtime.Options{})
	require.EqualError(t, err, "a program needs a graph")
	_, err = runtime.New(ctx, g, nil, platform, runtime.Options{})
	require.EqualError(t, err, "a program needs a plan")
	_, err = runtime.New(ctx, g, made, nil, runtime.Options{})
	require.EqualError(t, err, "a program needs a platform to run on")
	_, err = runtime.New(ctx, g, made, said{}, runtime.Options{})
	require.ErrorIs(t, err, cudart.ErrNoDevice)
	require.Equal(t, runtime.MachineOf(said{}), runtime.MachineOf(nil))
	_, err = runtime.MeasureMachine(ctx, nil, nil)
	require.ErrorIs(t, err, cudart.ErrNoDevice)

	program, err := runtime.New(ctx, g, made, platform, runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	require.EqualError(t, program.Run(ctx, -1), "run -1 replays: the number must be at least 0")
	require.EqualError(t, program.RunAlone(ctx, -1), "run -1 replays: the number must be at least 0")
	_, err = program.Measure(ctx, -1, -1)
	require.EqualError(t, err, "warm up with -1 replays: the number must be at least 0\nmeasure -1 replays: the number must be at least 1")
	_, err = program.Trace(ctx, 0)
	require.EqualError(t, err, "trace 0 replays: the number must be at least 1")
	require.EqualError(t, program.OnDone(nil), "OnDone needs a function to call")
	require.EqualError(t, program.ReplayThen(ctx, nil, nil), "ReplayThen needs a function to call with the result")
	require.EqualError(t, program.Read(ctx, -1, nil), "the pipeline has no buffer -1")
	require.EqualError(t, program.Read(ctx, 5, nil), "the pipeline has no buffer 5")
	require.EqualError(t, program.Read(ctx, 0, nil), `buffer "x" has 256 bytes, but the memory to read it into has 0`)
	require.Nil(t, program.Host(99))
	require.Zero(t, program.Address(-1))
	_, err = runtime.CompareResults(ctx, program, nil)
	require.EqualError(t, err, "two programs are needed to compare their results")

	require.EqualError(t, runtime.Generate(ctx, "", nil, nil), "there is no buffer to fill")
	b := &dag.Buffer{Name: "b", DType: dag.F32, Shape: []int64{2}, Init: &dag.Init{Kind: 99}}
	require.EqualError(t, runtime.Generate(ctx, "", b, make([]byte, 7)), `buffer "b" has 8 bytes, but the memory for its initial contents has 7`)
	require.EqualError(t, runtime.Generate(ctx, "", b, make([]byte, 8)), `buffer "b": init: unknown kind 99`)

	trace, err := program.Trace(ctx, 1)
	require.NoError(t, err)
	require.EqualError(t, trace.WriteChrome(io.Discard, nil, made, nil), "writing a trace needs its graph and its plan")
	require.EqualError(t, trace.WriteChrome(io.Discard, saxpyTwice(t), made, nil), "the trace has 4 nodes, but the graph has 5")
	require.EqualError(t, trace.WriteChrome(io.Discard, g, made, &plan.Timeline{}), "the prediction has 0 nodes, but the graph has 4")
}

// saxpyTwice has one node more than saxpy.
func saxpyTwice(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("five")
	x, d := b.Host("x", dag.F32, 5), b.Device("d", dag.F32, 5)
	for i := range int64(5) {
		b.Copy("up"+string(rune('0'+i)), dag.Range{Buffer: d, Lo: 4 * i, Hi: 4 * (i + 1)}, dag.Range{Buffer: x, Lo: 4 * i, Hi: 4 * (i + 1)})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestAClosedProgramSaysSo(t *testing.T) {
	ctx := t.Context()
	g, in, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	then := func(*runtime.Turn, error) {}
	require.NoError(t, program.ReplayThen(ctx, nil, then))
	require.NoError(t, program.Close())
	require.NoError(t, program.Close())
	_, measureErr := program.Measure(ctx, 0, 1)
	_, traceErr := program.Trace(ctx, 1)
	_, finishErr := program.Finish(ctx)
	_, compareErr := runtime.CompareResults(ctx, program, program)
	for what, err := range map[string]error{
		"Replay": program.Replay(ctx), "ReplayThen": program.ReplayThen(ctx, nil, then), "OnDone": program.OnDone(func(error) {}), "Run": program.Run(ctx, 1),
		"RunAlone": program.RunAlone(ctx, 1), "Synchronize": program.Synchronize(ctx), "Measure": measureErr, "Trace": traceErr, "Finish": finishErr,
		"Restore": program.Restore(ctx), "Read": program.Read(ctx, in, make([]byte, 128)), "CompareResults": compareErr,
		"SetScalar": program.SetScalar("double", 0, 1), "SetStorage": program.SetStorage("in", 0, 0),
	} {
		require.ErrorIs(t, err, runtime.ErrClosed, what)
	}
	require.Nil(t, program.Host(in))
}

// A callback that sleeps keeps the buffers; other callers wait for them no longer than their own contexts allow.
func TestCallbacksDoNotOutlastOthersContexts(t *testing.T) {
	g, _, _ := doubler(t)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	reading, read := make(chan struct{}), make(chan struct{})
	require.NoError(t, program.ReplayThen(t.Context(), nil, func(*runtime.Turn, error) { close(reading); <-read }))
	<-reading
	for what, wait := range map[string]func(ctx context.Context) error{
		"Run": func(ctx context.Context) error { return program.Run(ctx, 1) }, "Replay": program.Replay, "Synchronize": program.Synchronize,
		"Measure":  func(ctx context.Context) error { _, err := program.Measure(ctx, 0, 1); return err },
		"Trace":    func(ctx context.Context) error { _, err := program.Trace(ctx, 1); return err },
		"Read":     func(ctx context.Context) error { return program.Read(ctx, 0, make([]byte, 128)) },
		"RunAlone": func(ctx context.Context) error { return program.RunAlone(ctx, 1) },
		"ReplayThen": func(ctx context.Context) error {
			return program.ReplayThen(ctx, nil, func(*runtime.Turn, error) {})
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		require.ErrorIs(t, wait(ctx), context.DeadlineExceeded, what)
		cancel()
	}
	close(read)
	require.NoError(t, program.Run(t.Context(), 2))
	require.NoError(t, program.Close())
}

// A callback that panics or ends its goroutine leaves the program usable: nothing waits for ever for what the callback held.
func TestCallbacksThatEndEarly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, _, _ := doubler(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Inflight: 2})
	require.NoError(t, err)
	var numbers []uint64
	then := func(turn *runtime.Turn, err error) { numbers = append(numbers, turn.Number) }
	for range 3 {
		require.PanicsWithValue(t, "a bug of the caller's", func() {
			_ = program.ReplayThen(ctx, func(*runtime.Turn) { panic("a bug of the caller's") }, then)
		})
		require.NoError(t, program.ReplayThen(ctx, nil, then))
		require.NoError(t, program.ReplayThen(ctx, nil, func(*runtime.Turn, error) { goruntime.Goexit() }))
	}
	require.NoError(t, program.Run(ctx, 3))
	require.NoError(t, program.Close())
	require.Equal(t, []uint64{0, 2, 4}, numbers)
}
