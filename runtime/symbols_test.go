// Tests of variables of modules as buffers: each replay in flight has its own, restoring brings back what the code says, and sizes must agree.

package runtime_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

const counterPTX = `.version 7.0
.target sm_60
.address_size 64
.visible .global .align 4 .u32 count = 40;
.visible .const .align 4 .u32 step;
.visible .entry bump() {
  .reg .u32 %r<4>;
  ld.const.u32 %r1, [step];
  ld.global.u32 %r2, [count];
  add.u32 %r3, %r1, %r2;
  st.global.u32 [count], %r3;
  ret;
}
`

// counting is a pipeline that adds step to count; the builder has what a caller wants of the two variables.
func counting(t *testing.T, declare func(b *dag.Builder) dag.BufferID) (*dag.Graph, dag.BufferID) {
	t.Helper()
	module, err := kernels.OpenModule("m", "m.ptx", []byte(counterPTX), kernels.OpenOptions{})
	require.NoError(t, err)
	b := dag.New("counting")
	b.Use(kernels.Library())
	b.Module("m", "m.ptx", module)
	id := declare(b)
	b.Kernel("bump", "m.bump", dag.Args{}, dag.Grid(1), dag.Block(1))
	g, err := b.Graph()
	require.NoError(t, err)
	return g, id
}

func start(t *testing.T, g *dag.Graph, platform *host.Platform, options runtime.Options) *runtime.Program {
	t.Helper()
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(context.Background(), g, plan, platform, options)
	require.NoError(t, err)
	return program
}

func TestVariablesCarryTheirValueAndAreRestored(t *testing.T) {
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	g, count := counting(t, func(b *dag.Builder) dag.BufferID {
		step := b.Buffer(dag.Buffer{Name: "step", Place: dag.Device, DType: dag.U32, Symbol: "m.step"})
		b.Init(step, dag.Init{Kind: dag.InitRamp, A: 2})
		return b.Buffer(dag.Buffer{Name: "count", Place: dag.Device, DType: dag.U32, Shape: []int64{1}, Symbol: "m.count"})
	})
	require.Equal(t, []dag.BufferID{count}, g.Carried())
	program := start(t, g, platform, runtime.Options{})
	ctx := context.Background()
	value := func() uint32 {
		memory := make([]byte, 4)
		require.NoError(t, program.Read(ctx, count, memory))
		return binary.LittleEndian.Uint32(memory)
	}
	require.EqualValues(t, 40, value(), "what the code says")
	for range 3 {
		require.NoError(t, program.Replay(context.Background()))
	}
	require.EqualValues(t, 46, value())
	require.NoError(t, program.Restore(ctx))
	require.EqualValues(t, 40, value())
	require.NoError(t, program.Close())
	require.Zero(t, platform.Live())
}

func TestUndeclaredVariablesOrderLaunches(t *testing.T) {
	module, err := kernels.OpenModule("m", "m.ptx", []byte(counterPTX), kernels.OpenOptions{})
	require.NoError(t, err)
	b := dag.New("two")
	b.Module("m", "m.ptx", module)
	first := b.Kernel("first", "m.bump", dag.Args{}, dag.Grid(1), dag.Block(1))
	second := b.Kernel("second", "m.bump", dag.Args{}, dag.Grid(1), dag.Block(1))
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, 1, len(g.Edges()))
	require.Equal(t, [2]int32{int32(first), int32(second)}, [2]int32{int32(g.Edges()[0].From), int32(g.Edges()[0].To)})
	hidden := g.Buffers[len(g.Buffers)-1]
	require.Equal(t, "m.count", hidden.Symbol)
	require.True(t, hidden.Scratch)
	require.EqualValues(t, 4, hidden.Bytes)
}

func TestEachReplayInFlightHasItsOwnVariables(t *testing.T) {
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	g, count := counting(t, func(b *dag.Builder) dag.BufferID {
		first := b.Host("first", dag.U32, 1)
		b.Init(first, dag.Init{Kind: dag.InitRamp, A: 5})
		step := b.Buffer(dag.Buffer{Name: "step", Place: dag.Device, DType: dag.U32, Symbol: "m.step"})
		b.Init(step, dag.Init{Kind: dag.InitRamp, A: 2})
		count := b.Buffer(dag.Buffer{Name: "count", Place: dag.Device, DType: dag.U32, Shape: []int64{1}, Symbol: "m.count"})
		b.Copy("begin", b.Whole(count), b.Whole(first))
		return count
	})
	program := start(t, g, platform, runtime.Options{Inflight: 3})
	defer program.Close()
	addresses := map[uint64]bool{}
	for range 6 {
		addresses[uint64(program.Address(count))] = true
		require.NoError(t, program.Replay(context.Background()))
	}
	require.Len(t, addresses, 3)
	memory := make([]byte, 4)
	require.NoError(t, program.Read(context.Background(), count, memory))
	require.EqualValues(t, 7, binary.LittleEndian.Uint32(memory))
}

func TestWrongVariables(t *testing.T) {
	for name, wrong := range map[string]dag.Buffer{
		`buffer "x": buffer "x" has 8 bytes, count has 4`:                                                 {Name: "x", Place: dag.Device, DType: dag.U32, Shape: []int64{2}, Symbol: "m.count"},
		`buffer "x": module "m" has no variable "coutn"; did you mean "m.count"?`:                         {Name: "x", Place: dag.Device, DType: dag.U32, Symbol: "m.coutn"},
		`buffer "x": a variable of a module is in device memory, not in host memory; write place: device`: {Name: "x", DType: dag.U32, Symbol: "m.count"},
	} {
		module, err := kernels.OpenModule("m", "m.ptx", []byte(counterPTX), kernels.OpenOptions{})
		require.NoError(t, err)
		b := dag.New("wrong")
		b.Module("m", "m.ptx", module)
		b.Buffer(wrong)
		_, err = b.Graph()
		require.ErrorContains(t, err, name)
	}
}
