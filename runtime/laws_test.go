// Tests of the laws of replay: the same bits on any number of streams, in every mode, with any timing of the device's queues; and
// the state of a pipeline after warm-up, replays and restoring.

package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// random is a pipeline of i32 kernels and copies over slices of a few buffers. A wrong order changes the result, because scale and
// add do not commute and integers are exact.
func random(t require.TestingT, seed uint64, nodes int) *dag.Graph {
	const n = 96
	r := rand.New(rand.NewPCG(seed, 1))
	b := dag.New("random")
	b.Use(kernels.Library())
	in, out := b.Host("in", dag.I32, n), b.Host("out", dag.I32, n)
	b.Init(in, dag.Init{Kind: dag.InitRamp, A: 1, B: 1})
	var device []dag.BufferID
	for i := range 5 {
		device = append(device, b.Device(fmt.Sprintf("d%d", i), dag.I32, n))
		b.Copy(fmt.Sprintf("up%d", i), b.Whole(device[i]), b.Whole(in))
	}
	part := func() dag.Range { return b.Part(dag.BufferID(device[r.IntN(len(device))]), r.Int64N(3), 3) }
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		x, y := part(), part()
		for x == y {
			y = part()
		}
		switch r.IntN(5) {
		case 0:
			b.Kernel(name, "scale", dag.Args{n / 3, 3, x})
		case 1:
			b.Kernel(name, "axpy", dag.Args{n / 3, 2, x, y})
		case 2:
			b.Kernel(name, "copy", dag.Args{n / 3, x, y})
		case 3:
			b.Memset(name, x, r.IntN(9))
		case 4:
			b.Copy(name, y, x)
		}
	}
	for i := range int64(3) {
		b.Copy(fmt.Sprintf("down%d", i), b.Part(out, i, 3), part())
	}
	b.Save(out, "out.npy")
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// outcome runs a graph and returns the bytes of its buffer out.
func outcome(t require.TestingT, g *dag.Graph, plan planner.Options, device host.Options, options runtime.Options, replays int) []byte {
	ctx := context.Background()
	p, err := planner.New(ctx, g, plan)
	require.NoError(t, err)
	platform, err := host.Open(device)
	require.NoError(t, err)
	defer func() { require.NoError(t, platform.Close()) }()
	program, err := runtime.New(ctx, g, p, platform, options)
	require.NoError(t, err)
	defer func() { require.NoError(t, program.Close()) }()
	require.NoError(t, program.Run(ctx, replays))
	id, _ := program.Buffer("out")
	memory := make([]byte, g.Buffers[id].Bytes)
	require.NoError(t, program.Read(ctx, id, memory))
	return memory
}

func TestResultsDoNotDependOnStreamsModeOrTiming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t, rapid.Uint64().Draw(t, "graph"), rapid.IntRange(1, 30).Draw(t, "nodes"))
		want := outcome(t, g, planner.Options{Strategy: "serial", KeepAll: true}, host.Options{}, runtime.Options{}, 1)
		strategy := rapid.SampledFrom([]string{"list", "roundrobin", "auto"}).Draw(t, "strategy")
		mode := rapid.SampledFrom([]runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built}).Draw(t, "mode")
		memory := rapid.SampledFrom([]runtime.MemoryMode{runtime.Arena, runtime.Separate}).Draw(t, "memory")
		threads := rapid.IntRange(1, 3).Draw(t, "threads")
		inflight := rapid.IntRange(1, 3).Draw(t, "inflight")
		plan := planner.Options{Strategy: strategy, Streams: rapid.IntRange(1, 8).Draw(t, "streams"), SingleUseEvents: threads > 1}
		device := host.Options{CheckOrder: true, Perturb: rapid.Uint64Range(1, 1<<40).Draw(t, "perturb")}
		got := outcome(t, g, plan, device, runtime.Options{Mode: mode, Memory: memory, Threads: threads, Inflight: inflight}, inflight+1)
		require.Equal(t, want, got)
	})
}

// counter adds 1 to a device buffer at each replay: its contents tell how many there were.
func counter(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("counter")
	b.Use(kernels.Library())
	one, count, out := b.Device("one", dag.I32, 4), b.Device("count", dag.I32, 4), b.Host("out", dag.I32, 4)
	b.Init(one, dag.Init{Kind: dag.InitValue, Value: expr.Int(1)})
	b.Init(count, dag.Init{Kind: dag.InitZeros})
	b.Kernel("add", "add", dag.Args{4, b.Whole(one), b.Whole(count), b.Whole(count)})
	b.Copy("down", b.Whole(out), b.Whole(count))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestStateIsThatOfTheReplaysAskedFor(t *testing.T) {
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built, runtime.Auto} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := context.Background()
			g := counter(t)
			plan, err := planner.New(ctx, g, planner.Options{})
			require.NoError(t, err)
			program, err := runtime.New(ctx, g, plan, cpu(t), runtime.Options{Mode: mode})
			require.NoError(t, err)
			defer program.Close()
			read := func() uint64 {
				id, _ := program.Buffer("out")
				memory := make([]byte, 16)
				require.NoError(t, program.Read(ctx, id, memory))
				return dag.I32.Load(memory, 0)
			}
			require.NoError(t, program.Run(ctx, 7)) // a warm-up
			require.NoError(t, program.Restore(ctx))
			_, err = program.Measure(ctx, 2, 5)
			require.NoError(t, err)
			_, err = program.Trace(ctx, 2)
			require.NoError(t, err)
			require.NoError(t, program.Run(ctx, 3))
			require.EqualValues(t, 3, read())
			require.NoError(t, program.Run(ctx, 2))
			require.EqualValues(t, 5, read())
		})
	}
}

func TestCarriedStateRefusesReplaysInFlight(t *testing.T) {
	ctx := context.Background()
	g := counter(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	_, err = runtime.New(ctx, g, plan, cpu(t), runtime.Options{Inflight: 3})
	var carried *runtime.CarriedError
	require.ErrorAs(t, err, &carried)
	require.EqualError(t, err, `3 replays in flight are not possible: buffer "count" is read before it is written, so each replay depends on the one before it`)
}

func TestReplayAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	b := dag.New("copies") // without kernels: a Go reference may allocate as it likes
	x := b.Host("x", dag.F32, 1024)
	for i := range 4 {
		d := b.Device(fmt.Sprintf("d%d", i), dag.F32, 1024)
		b.Copy(fmt.Sprintf("up%d", i), b.Whole(d), b.Whole(x))
		b.Memset(fmt.Sprintf("set%d", i), b.Part(d, 0, 2), 1)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
		program, err := runtime.New(ctx, g, plan, cpuUnchecked(t), runtime.Options{Mode: mode})
		require.NoError(t, err)
		require.NoError(t, program.Run(ctx, 200)) // until the queues have their final size
		allocated := testing.AllocsPerRun(100, func() {
			if program.Replay(ctx) != nil || program.Synchronize(ctx) != nil {
				t.Error("a replay failed")
			}
		})
		require.Zero(t, allocated, mode)
		require.NoError(t, program.Close())
	}
}

func cpuUnchecked(t *testing.T) *host.Platform {
	t.Helper()
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
