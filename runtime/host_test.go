// Tests of host functions: results, failures, panics, contexts, and what remains usable afterwards.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// hosted doubles n numbers on the device, lets the host add 1 to the halves, doubles again, and lets the host note the first number.
func hosted(t *testing.T) *dag.Graph {
	t.Helper()
	const n = 64
	b := dag.New("hosted")
	b.Use(kernels.Library())
	x, out, log := b.Host("x", dag.F32, n), b.Host("out", dag.F32, n), b.Host("log", dag.F32, 1)
	y := b.Host("y", dag.F32, n)
	d := b.Device("d", dag.F32, n)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(3)})
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Kernel("double", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("middle", b.Whole(y), b.Whole(d))
	for k := range int64(2) {
		b.HostFunction(fmt.Sprintf("add.%d", k), "add", b.Slice(y, k*n/2, (k+1)*n/2).InOut())
	}
	b.Copy("again", b.Whole(d), b.Whole(y))
	b.Kernel("double.again", "scale", dag.Args{n, 2, b.Whole(d)})
	b.Copy("down", b.Whole(out), b.Whole(d))
	b.HostFunction("note", "note", b.In(out), b.Out(log))
	b.Expect(out, dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(14)})
	b.Expect(log, dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(14)})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func addOne(_ context.Context, c *runtime.HostCall) error {
	for i := range int64(len(c.Bytes(0)) / 4) {
		dag.F32.Store(c.Bytes(0), i, dag.F32.FromFloat(1+dag.F32.ToFloat(dag.F32.Load(c.Bytes(0), i))))
	}
	return nil
}

func note(_ context.Context, c *runtime.HostCall) error {
	copy(c.Buffer("log"), c.Buffer("out")[:4])
	return nil
}

// prepared makes a program of hosted with its functions; change replaces some.
func prepared(t *testing.T, g *dag.Graph, o runtime.Options, change map[string]runtime.HostFunction) *runtime.Program {
	t.Helper()
	plan, err := planner.New(t.Context(), g, planner.Options{Streams: 3})
	require.NoError(t, err)
	o.Functions = map[string]runtime.HostFunction{"add": addOne, "note": note}
	for name, f := range change {
		o.Functions[name] = f
	}
	program, err := runtime.New(t.Context(), g, plan, cpu(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	return program
}

var hostModes = []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built, runtime.Auto}

func TestHostFunctionsRunBetweenDeviceWork(t *testing.T) {
	for _, mode := range hostModes {
		for _, inflight := range []int{1, 3} {
			program := prepared(t, hosted(t), runtime.Options{Mode: mode, Inflight: inflight}, nil)
			require.NoError(t, program.Run(t.Context(), 5))
			results, err := program.Finish(t.Context())
			require.NoError(t, err)
			require.Empty(t, results.Failed(), "%s, %d in flight", mode, inflight)
			_, err = program.Measure(t.Context(), 1, 3)
			require.NoError(t, err)
			trace, err := program.Trace(t.Context(), 2)
			require.NoError(t, err)
			require.NotNil(t, trace)
		}
	}
}

// Whatever goes wrong in a function, the nodes left in the replay run, no later replay starts, and the error names the node.
func TestHostFunctionsThatFail(t *testing.T) {
	boom := errors.New("boom")
	for what, fail := range map[string]struct {
		how  func() error
		want string
	}{
		"error":   {func() error { return boom }, `node "add.0": host function "add" in replay 2: boom; no results are saved`},
		"panic":   {func() error { panic("boom") }, `node "add.0": host function "add" panicked in replay 2: boom; no results are saved`},
		"wrapped": {func() error { panic(boom) }, `node "add.0": host function "add" panicked in replay 2: boom; no results are saved`},
		"goexit":  {func() error { goruntime.Goexit(); return nil }, `node "add.0": host function "add" in replay 2: it ended its goroutine (runtime.Goexit); no results are saved`},
	} {
		for _, mode := range hostModes[:3] {
			var notes, adds atomic.Int64
			program := prepared(t, hosted(t), runtime.Options{Mode: mode}, map[string]runtime.HostFunction{
				"add": func(ctx context.Context, c *runtime.HostCall) error {
					adds.Add(1)
					if c.Replay == 2 {
						return fail.how()
					}
					return addOne(ctx, c)
				},
				"note": func(ctx context.Context, c *runtime.HostCall) error {
					notes.Add(1)
					return note(ctx, c)
				},
			})
			err := program.Run(t.Context(), 10)
			require.EqualError(t, err, fail.want, "%s, %s", what, mode)
			var failure *runtime.HostError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, what == "error" || what == "wrapped", errors.Is(err, boom))
			require.Equal(t, what == "panic" || what == "wrapped", failure.Stack != "")
			require.Equal(t, int64(3), notes.Load(), "the nodes left in the replay run, and no later replay starts")
			require.Equal(t, int64(6), adds.Load())
			require.EqualError(t, program.Replay(t.Context()), fail.want)
			_, err = program.Finish(t.Context())
			require.EqualError(t, err, fail.want)
		}
	}
}

// The buffers of a turn whose host function failed come back, so that nobody waits for them for ever.
func TestFailedHostFunctionsGiveTurnsBack(t *testing.T) {
	for _, mode := range hostModes[:3] {
		program := prepared(t, hosted(t), runtime.Options{Mode: mode, Inflight: 2}, map[string]runtime.HostFunction{
			"note": func(_ context.Context, c *runtime.HostCall) error {
				if c.Replay >= 1 {
					panic("no")
				}
				return nil
			},
		})
		var mu sync.Mutex
		var outcomes []string
		then := func(turn *runtime.Turn, err error) {
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, fmt.Sprint(turn.Number, " ", err))
		}
		var refused error
		for range 20 {
			if refused = program.ReplayThen(t.Context(), nil, then); refused != nil {
				break
			}
		}
		require.EqualError(t, refused, `node "note": host function "note" panicked in replay 1: no; no results are saved`)
		submitted := program.Replays()
		require.Equal(t, refused, program.ReplayThen(t.Context(), nil, then))
		require.Equal(t, refused, program.Synchronize(t.Context()))
		require.Equal(t, submitted, program.Replays(), "a refused replay does not count")
		require.Equal(t, submitted, program.Counters().Replays)
		mu.Lock()
		require.Equal(t, []string{"0 <nil>", `1 replay 1: node "note": host function "note" panicked in replay 1: no; no results are saved`}, outcomes[:2])
		require.LessOrEqual(t, len(outcomes), 4)
		mu.Unlock()
	}
}

// A function sees the end of the context that its replay was started with, and the end of its program.
func TestHostFunctionsSeeTheEndOfTheirContext(t *testing.T) {
	waits := func(ctx context.Context, _ *runtime.HostCall) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	gone := errors.New("gone")
	for _, mode := range hostModes[:3] {
		begun := make(chan struct{}, 1)
		program := prepared(t, hosted(t), runtime.Options{Mode: mode}, map[string]runtime.HostFunction{
			"note": func(ctx context.Context, c *runtime.HostCall) error {
				begun <- struct{}{}
				return waits(ctx, c)
			},
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, program.Replay(ctx))
		<-begun
		cancel(gone)
		err := program.Synchronize(t.Context())
		require.ErrorIs(t, err, gone)
		require.EqualError(t, err, `node "note": host function "note" in replay 0: gone; no results are saved`)

		var cause error
		closed := prepared(t, hosted(t), runtime.Options{Mode: mode}, map[string]runtime.HostFunction{
			"note": func(ctx context.Context, c *runtime.HostCall) error {
				begun <- struct{}{}
				cause = waits(ctx, c)
				return cause
			},
		})
		require.NoError(t, closed.Replay(t.Context()))
		<-begun
		require.NoError(t, closed.Close())
		require.ErrorIs(t, cause, runtime.ErrClosed)
	}
}

func TestUnknownHostFunctionsAreRefused(t *testing.T) {
	g := hosted(t)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	_, err = runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{Functions: map[string]runtime.HostFunction{"note": note, "add": nil}})
	require.EqualError(t, err, `node "add.0" runs the host function "add", which this program does not have; a Go program that embeds dagrun passes it in runtime.Options.Functions`)
	var unknown *runtime.UnknownFunctionError
	require.ErrorAs(t, err, &unknown)
}

// A body with a host function is submitted as streams, pass by pass, and says so.
func TestHostFunctionsInBodies(t *testing.T) {
	b := dag.New("body")
	b.Use(kernels.Library())
	x, d := b.Host("x", dag.F64, 1), b.Device("d", dag.F64, 1)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(1000)})
	b.Init(d, dag.Init{Kind: dag.InitValue, Value: expr.Int(1000)})
	b.Repeat("loop", dag.Loop{Until: "d < 1", Most: 50}, func() {
		b.HostFunction("halve", "halve", b.InOut(x))
		b.Copy("up", b.Whole(d), b.Whole(x))
	})
	g, err := b.Graph()
	require.NoError(t, err)
	for _, mode := range hostModes[:3] {
		var runs []uint64
		program := prepared(t, g, runtime.Options{Mode: mode}, map[string]runtime.HostFunction{"halve": func(_ context.Context, c *runtime.HostCall) error {
			runs = append(runs, c.Replay)
			dag.F64.Store(c.Bytes(0), 0, dag.F64.FromFloat(dag.F64.ToFloat(dag.F64.Load(c.Bytes(0), 0))/2))
			return nil
		}})
		require.NoError(t, program.Run(t.Context(), 1))
		loops, err := program.Loops(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(10), loops[0].Passes)
		require.Equal(t, slices.Repeat([]uint64{0}, 10), runs)
		require.Equal(t, runtime.Streams, program.Mode())
		if mode != runtime.Streams {
			require.Contains(t, program.NoGraph(), "halve")
		}
	}
}

// The nil call of a hostile program has no memory.
func TestHostCallsOfNothing(t *testing.T) {
	var none *runtime.HostCall
	require.Zero(t, none.Len())
	require.Nil(t, none.Bytes(0))
	require.Nil(t, none.Buffer("x"))
	require.Nil(t, (&runtime.HostCall{}).Bytes(-1))
}
