// Tests of loops and branches, on one device and on several: random nests of them give the bits of the unrolled pipeline, on any number of streams, wherever their nodes run and with any timing
// of the device's queues. With DAGRUN_LONG set, 10,000 nests are tried.

package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/spread"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/tests/nests"
)

func TestNestsOfLoopsAndBranchesEqualTheUnrolledPipeline(t *testing.T) {
	count, unrolled := 300, 20 // one in so many is unrolled; all are followed in Go
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		count, unrolled = 10_000, 1
	case testing.Short():
		count = 60
	}
	strategies := []string{"list", "roundrobin", "serial", "heft", "auto"}
	for seed := range uint64(count) {
		r := rand.New(rand.NewPCG(seed, 8))
		nest := nests.New(r)
		plan := planner.Options{Strategy: strategies[r.IntN(len(strategies))], Streams: 1 + r.IntN(6)}
		device := host.Options{CheckOrder: true, Perturb: 1 + r.Uint64N(1<<40)}
		options := runtime.Options{Mode: runtime.Mode(r.IntN(4)), Memory: runtime.MemoryMode(r.IntN(2)), Inflight: 1 + r.IntN(2)}
		g, err := nest.Graph()
		require.NoError(t, err)
		if len(g.Carried()) > 0 { // a temporary of several branches: what the last one that ran left there
			options.Inflight = 1
		}
		got := outcome(t, g, plan, device, options, 1+r.IntN(3))
		require.Equal(t, nest.Out(), got, "seed %d", seed)
		if seed%uint64(unrolled) == 0 {
			g, err := nest.Unrolled()
			require.NoError(t, err)
			flat := outcome(t, g, planner.Options{}, host.Options{}, runtime.Options{}, 1)
			require.Equal(t, flat, got, "seed %d, unrolled", seed)
		}
	}
}

// countdown halves a number until it is small: until says the test, and the loop takes 10 passes from 1000 to below 1.
func countdown(t *testing.T, loop dag.Loop) *dag.Graph {
	t.Helper()
	b := dag.New("countdown")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(1000)})
	b.Repeat("halve", loop, func() { b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)}) })
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// Nodes of bodies, and conditions, follow a buffer that moves and a scalar that changes.
func TestLoopsAreUpdated(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		ctx, platform := t.Context(), cpu(t)
		g := countdown(t, dag.Loop{Until: "x < 1", Most: 50})
		plan, err := planner.New(ctx, g, planner.Options{KeepAll: true})
		require.NoError(t, err)
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		require.Equal(t, mode, program.Mode())
		passes := func() int64 {
			require.NoError(t, program.Run(ctx, 1))
			loops, err := program.Loops(ctx)
			require.NoError(t, err)
			return loops[0].Passes
		}
		require.Equal(t, int64(10), passes())
		require.NoError(t, program.Restore(ctx))
		require.NoError(t, program.SetScalar("half", 1, 0.25))
		require.Equal(t, int64(5), passes())
		other, err := platform.Alloc(0, 8)
		require.NoError(t, err)
		require.NoError(t, program.SetStorage("x", other, 8))
		require.NoError(t, program.Restore(ctx))
		require.Equal(t, int64(5), passes(), mode)
		require.ErrorIs(t, program.SetScalar("half", 0, 5), runtime.ErrUpdate, "more elements than declared")
		require.NoError(t, program.Close())
		require.NoError(t, platform.Free(other))
	}
}

func loopsOf(t *testing.T, g *dag.Graph) ([]runtime.Loop, *runtime.Results) {
	t.Helper()
	ctx := context.Background()
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	require.NoError(t, program.Run(ctx, 1))
	results, err := program.Finish(ctx)
	require.NoError(t, err)
	loops, err := program.Loops(ctx)
	require.NoError(t, err)
	return loops, results
}

func TestPassesAreCounted(t *testing.T) {
	ten, nine := int64(10), int64(9)
	for _, c := range []struct {
		loop dag.Loop
		text string
		ok   bool
	}{
		{dag.Loop{Times: 3}, "3 passes", true},
		{dag.Loop{Times: 0}, "0 passes", true},
		{dag.Loop{Until: "x < 1", Most: 50}, "10 passes of at most 50", true},
		{dag.Loop{Until: "x < 1", Most: 10}, "10 passes of at most 10", true},
		{dag.Loop{Until: "x < 1", Most: 9}, "stopped after 9 passes, before its condition (until x < 1) was met", false},
		{dag.Loop{Until: "x < 1", Most: 9, OrStop: true}, "stopped after 9 passes", true},
		{dag.Loop{Until: "x < 1", Most: 50, Every: 4}, "12 passes of at most 50", true},
		{dag.Loop{Until: "x < 1", Most: 11, Every: 4}, "11 passes of at most 11", true},
		{dag.Loop{While: "x >= 1", Most: 50}, "10 passes of at most 50", true},
		{dag.Loop{While: "x >= 1", Most: 10}, "10 passes of at most 10", true},
		{dag.Loop{While: "x >= 1", Most: 9}, "stopped after 9 passes, before its condition (while x >= 1) was met", false},
		{dag.Loop{While: "x < 1", Most: 9}, "0 passes of at most 9", true},
		{dag.Loop{Until: "x < 1", Most: 50, Expect: &ten}, "10 passes of at most 50", true},
		{dag.Loop{Until: "x < 1", Most: 50, Expect: &nine}, "10 passes of at most 50; expected 9", false},
	} {
		loops, results := loopsOf(t, countdown(t, c.loop))
		require.Len(t, loops, 1)
		require.Equal(t, c.text, loops[0].Text())
		require.Equal(t, c.ok, loops[0].OK, c.text)
		require.Equal(t, c.ok, len(results.FailedLoops()) == 0, c.text)
	}
}

// Counts are those of the last replay, also if nodes run alone, after replays as a graph.
func TestNodesAloneCountTheLastReplay(t *testing.T) {
	ctx, platform := t.Context(), cpu(t)
	g := countdown(t, dag.Loop{Until: "x < 1", Most: 50})
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		require.NoError(t, program.Run(ctx, 1))
		require.NoError(t, program.RunAlone(ctx, 3)) // x is below 1 already, so each makes one pass
		loops, err := program.Loops(ctx)
		require.NoError(t, err)
		require.Equal(t, "1 pass of at most 50", loops[0].Text(), mode)
		require.NoError(t, program.Close())
	}
}

// A graph counts what its loops and branches do as streams do.
func TestGraphsCountLikeStreams(t *testing.T) {
	platform := cpu(t)
	for seed := range uint64(30) {
		g, err := nests.New(rand.New(rand.NewPCG(seed, 8))).Graph()
		require.NoError(t, err)
		plan, err := planner.New(t.Context(), g, planner.Options{})
		require.NoError(t, err)
		var counted []runtime.Loop
		for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
			program, err := runtime.New(t.Context(), g, plan, platform, runtime.Options{Mode: mode})
			require.NoError(t, err)
			require.Equal(t, mode, program.Mode())
			require.NoError(t, program.Run(t.Context(), 2))
			loops, err := program.Loops(t.Context())
			require.NoError(t, err)
			if mode == runtime.Streams {
				counted = loops
			}
			require.Equal(t, counted, loops, "seed %d", seed)
			require.NoError(t, program.Close())
		}
	}
}

func TestALoopEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	g := countdown(t, dag.Loop{Times: dag.MaxPasses})
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	over := errors.New("over")
	go cancel(over)
	require.ErrorIs(t, program.Run(ctx, 1), over)
}

func TestNestsOnSeveralDevicesGiveTheSameBits(t *testing.T) {
	count := 100
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		count = 10_000
	case testing.Short():
		count = 40
	}
	strategies := []string{"list", "roundrobin", "serial", "heft", "auto"}
	policies := spread.Policies()
	divided := 0
	for seed := range uint64(count) {
		r := rand.New(rand.NewPCG(seed, 12))
		nest := nests.New(r)
		g, err := nest.Graph()
		require.NoError(t, err)
		devices := 2 + r.IntN(3)
		var s *plan.Spread
		if seed%8 == 0 {
			s, err = spread.New(t.Context(), g, spread.Options{Devices: devices, Policy: policies[r.IntN(len(policies))]})
		} else {
			at := make([]int32, spread.Nodes(g))
			for i := range at {
				at[i] = int32(r.IntN(devices))
			}
			s, err = spread.At(g, spread.Options{Devices: devices}, at)
		}
		require.NoError(t, err, "seed %d", seed)
		plan := planner.Options{Strategy: strategies[r.IntN(len(strategies))], Streams: 1 + r.IntN(6)}
		device := host.Options{CheckOrder: true, Devices: devices, Perturb: 1 + r.Uint64N(1<<40)}
		options := runtime.Options{Mode: runtime.Mode(r.IntN(4)), Memory: runtime.MemoryMode(r.IntN(2)), Inflight: 1 + r.IntN(2)}
		if len(s.Graph.Carried()) > 0 { // a temporary of several branches: what the last one that ran left there
			options.Inflight = 1
		}
		require.Equal(t, nest.Out(), outcome(t, s.Graph, plan, device, options, 1+r.IntN(3)), "seed %d", seed)
		if s.Graph.NotInGraph() != "" {
			divided++
		}
	}
	require.Greater(t, divided, count/3, "bodies on several devices")
}

// A body none of whose nodes runs where its condition is read.
func TestBodiesElsewhereThanTheirConditions(t *testing.T) {
	g := countdown(t, dag.Loop{Until: "x < 1", Most: 50})
	s, err := spread.At(g, spread.Options{Devices: 2}, []int32{0, 1})
	require.NoError(t, err)
	require.Equal(t, `"half" in "halve" runs on device 1, not 0, which the body of a conditional graph node cannot`, s.Graph.NotInGraph())
	p, err := host.Open(host.Options{CheckOrder: true, Devices: 2})
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), s.Graph, planner.Options{})
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Auto} {
		program, err := runtime.New(t.Context(), s.Graph, plan, p, runtime.Options{Mode: mode})
		require.NoError(t, err)
		require.Equal(t, runtime.Streams, program.Mode())
		for range 2 {
			require.NoError(t, program.Run(t.Context(), 1))
			loops, err := program.Loops(t.Context())
			require.NoError(t, err)
			require.Equal(t, "10 passes of at most 50", loops[0].Text())
			require.NoError(t, program.Restore(t.Context()))
		}
		require.NoError(t, program.Close())
	}
	require.Equal(t, cudart.Live{}, p.Live())
	require.NoError(t, p.Close())
}

// A launch of nothing is nothing, also where the host submits passes.
func TestLaunchesOfNothingBesideLoops(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Auto} {
		b := dag.New("nothing")
		b.Use(kernels.Library())
		x := b.Device("x", dag.F32, 4)
		b.Init(x, dag.Init{Kind: dag.InitRamp, A: 1})
		b.Kernel("nothing before", "scale", dag.Args{0, 2, b.Slice(x, 0, 0)})
		b.Repeat("loop", dag.Loop{Times: 3}, func() {
			b.Kernel("double", "scale", dag.Args{4, 2, b.Whole(x)})
			b.Kernel("nothing in it", "scale", dag.Args{0, 2, b.Slice(x, 4, 4)})
		})
		b.Kernel("nothing after", "scale", dag.Args{0, 2, b.Slice(x, 0, 0)})
		g, err := b.Graph()
		require.NoError(t, err)
		plan, err := planner.New(t.Context(), g, planner.Options{})
		require.NoError(t, err)
		program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{Mode: mode})
		require.NoError(t, err)
		defer program.Close()
		require.NoError(t, program.Run(t.Context(), 1))
		memory := make([]byte, 16)
		require.NoError(t, program.Read(t.Context(), x, memory))
		require.Equal(t, 8.0, dag.F32.ToFloat(dag.F32.Load(memory, 0)))
	}
}

// The passes of a loop are submitted to the stream that it is on.
func TestBodiesRunOnTheStreamOfTheirLoop(t *testing.T) {
	b := dag.New("streams")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F32, 4)
	b.Repeat("outer", dag.Loop{Times: 3}, func() {
		b.Kernel("double", "scale", dag.Args{4, 2, b.Whole(x)})
		b.Repeat("inner", dag.Loop{Times: 2}, func() { b.Kernel("halve", "scale", dag.Args{4, 0.5, b.Whole(x)}) })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	platform := cpu(t)
	before := platform.Live().Streams
	program := start(t, g, platform, runtime.Options{Mode: runtime.Streams})
	defer program.Close()
	require.Equal(t, before+1, platform.Live().Streams)
	require.NoError(t, program.Run(t.Context(), 1))
}

// A condition may compare several elements, of types and places of their own.
func TestConditionsOfSeveralElements(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Auto} {
		b := dag.New("several")
		b.Use(kernels.Library())
		x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F64, 4)
		b.Init(x, dag.Init{Kind: dag.InitRamp, A: 1})
		b.Init(y, dag.Init{Kind: dag.InitRamp, A: 97, B: 1})
		b.Repeat("loop", dag.Loop{While: "x(2..3) < y(3..4) and x(0..1) < y(1..2) + y(0..1)", Most: 50}, func() {
			b.Kernel("double", "scale", dag.Args{4, 2, b.Whole(x)})
		})
		g, err := b.Graph()
		require.NoError(t, err)
		program := start(t, g, cpu(t), runtime.Options{Mode: mode})
		defer program.Close()
		require.NoError(t, program.Run(t.Context(), 1))
		loops, err := program.Loops(t.Context())
		require.NoError(t, err)
		require.Equal(t, "7 passes of at most 50", loops[0].Text(), "128 is not less than 100")
	}
}
