// Tests of machine models from a device's description and from measuring, and of replays of one node at a time.

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/learn"
)

// said is a platform of which only the description is used.
type said struct {
	cudart.Platform
	infos []cudart.Info
}

func (s said) Name() string           { return "cuda" }
func (s said) Devices() []cudart.Info { return s.infos }

func TestMachineOfWhatADeviceSays(t *testing.T) {
	a100 := cudart.Info{Name: "NVIDIA A100-SXM4-40GB", Memory: 40 << 30, Multiprocessors: 108, Capability: [2]int{8, 0}, ClockKHz: 1_410_000,
		MemoryClockKHz: 1_215_000, MemoryBusBits: 5120, CopyEngines: 3, ThreadsPerSM: 2048, BlocksPerSM: 32, SharedPerSM: 164 << 10}
	m := runtime.MachineOf(said{infos: []cudart.Info{a100}})
	require.NoError(t, m.Validate())
	require.Equal(t, "NVIDIA A100-SXM4-40GB", m.Name)
	require.Equal(t, 108, m.Multiprocessors)
	require.Equal(t, 80, m.Capability)
	require.EqualValues(t, 40<<30, m.DeviceBytes)
	require.InDelta(t, 1_555_000*5/6, m.Memory, 2000, "1,555 GB/s by the data sheet")
	require.InDelta(t, 19_500_000, m.Flops, 100_000, "19.5 TFLOPS by the data sheet")
	require.Equal(t, 1, m.CopyEngines)
	require.Equal(t, 25_000.0, m.HostToDevice)

	h200 := runtime.MachineOf(said{infos: []cudart.Info{{Name: "NVIDIA H200", Memory: 139 << 30, Capability: [2]int{9, 0}}}})
	want := planner.H200()
	want.Name = "NVIDIA H200"
	require.Equal(t, want, h200)

	// A device that reports nothing still gives a machine that can be planned for.
	require.NoError(t, runtime.MachineOf(said{}).Validate())
}

func TestMeasureMachine(t *testing.T) {
	cpu, err := host.Open(host.Options{Devices: 2})
	require.NoError(t, err)
	stages := 0
	m, err := runtime.MeasureMachine(context.Background(), cpu, func(string, int, int) { stages++ })
	require.NoError(t, err)
	require.NoError(t, m.Validate())
	require.Equal(t, 17, stages)
	require.NotEqual(t, runtime.MachineOf(cpu), m, "something was measured")
	require.Positive(t, m.LaunchUS)
	require.LessOrEqual(t, m.GraphIssueUS, m.GraphNodeUS)
	require.Positive(t, m.BothWays)
	require.Zero(t, cpu.Live())
	require.NoError(t, cpu.Close())
}

// A kept machine is found for the same device only, and ignored if it is no machine.
func TestKeptMachine(t *testing.T) {
	open := func(o host.Options) *host.Platform {
		platform, err := host.Open(o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, platform.Close()) })
		return platform
	}
	one, two, other := open(host.Options{Workers: 3}), open(host.Options{Workers: 3, Devices: 2}), open(host.Options{Workers: 7})
	folder := cache.Open(t.TempDir())
	kept := func(platform *host.Platform) *planner.Machine {
		m, err := learn.KeptMachine(platform, folder)
		require.NoError(t, err)
		return m
	}
	require.Nil(t, kept(one))
	m := runtime.MachineOf(one)
	m.LaunchUS, m.HostToDevice = 1.25, 31_000
	require.NoError(t, learn.KeepMachine(t.Context(), one, folder, m))
	require.Equal(t, m, kept(one))
	require.Equal(t, m, kept(two), "its first device is the same")
	require.Nil(t, kept(other))

	wrong := *m
	wrong.HostToDevice = -1
	require.ErrorContains(t, learn.KeepMachine(t.Context(), one, folder, &wrong), "host_to_device")
	require.Equal(t, m, kept(one))
	files, err := filepath.Glob(filepath.Join(folder.Path(), "machines", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("garbage"), 0o600))
	_, err = learn.KeptMachine(one, folder)
	require.EqualError(t, err, files[0]+" is ignored: not usable: it is not a file of dagrun's (dagrun cache --clear removes it)")
	require.NoError(t, folder.KeepMachine(t.Context(), learn.DeviceKey(one), []byte(`{"version":1,"name":"x"}`)))
	_, err = learn.KeptMachine(one, folder)
	require.ErrorIs(t, err, model.ErrBadMachine)
	require.ErrorContains(t, err, "the measurements kept for "+one.Devices()[0].Name+" are ignored: ")

	absurd := *m
	absurd.StepUS = 1e14 // a valid machine, with which replays would end after the end of timelines
	require.NoError(t, absurd.Validate())
	require.ErrorContains(t, learn.KeepMachine(t.Context(), one, folder, &absurd), "step_us is 1e+14: no device takes more than 1e+06")
	var text bytes.Buffer
	require.NoError(t, absurd.Encode(&text))
	require.NoError(t, folder.KeepMachine(t.Context(), learn.DeviceKey(one), text.Bytes()))
	_, err = learn.KeptMachine(one, folder)
	require.ErrorContains(t, err, "the measurements kept for "+one.Devices()[0].Name+" are ignored: ")

	m, err = learn.KeptMachine(nil, folder)
	require.NoError(t, err)
	require.Nil(t, m)
	require.NoError(t, learn.KeepMachine(t.Context(), one, nil, runtime.MachineOf(one)))
}

func TestMeasureMachineStops(t *testing.T) {
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = runtime.MeasureMachine(ctx, cpu, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, cpu.Live())
	require.NoError(t, cpu.Close())
}

// alone makes a program of a chain; the columns of its sparse matrix decide whether it faults.
func alone(t *testing.T, column float64) (*runtime.Program, *host.Platform) {
	t.Helper()
	b := dag.New("alone")
	b.Use(kernels.Library())
	offsets, columns := b.Device("offsets", dag.I32, 9), b.Device("columns", dag.I32, 8)
	values, x, y := b.Device("values", dag.F32, 8), b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
	b.Init(offsets, dag.Init{Kind: dag.InitRamp, A: 0, B: 1})
	b.Init(columns, dag.Init{Kind: dag.InitRamp, A: column})
	b.Kernel("ones", "fill", dag.Args{8, 1.0, b.Whole(values)})
	b.Kernel("x", "fill", dag.Args{8, 3.0, b.Whole(x)})
	b.Kernel("multiply", "spmv_csr", dag.Args{8, 8, 8, b.Whole(offsets), b.Whole(columns), b.Whole(values), b.Whole(x), b.Whole(y)})
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{KeepAll: true})
	require.NoError(t, err)
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	p, err := runtime.New(t.Context(), g, plan, cpu, runtime.Options{Inflight: 2})
	require.NoError(t, err)
	return p, cpu
}

func TestRunAloneComputesTheSame(t *testing.T) {
	p, cpu := alone(t, 2)
	require.NoError(t, p.RunAlone(t.Context(), 3))
	y, _ := p.Buffer("y")
	memory := make([]byte, 32)
	require.NoError(t, p.Read(t.Context(), y, memory))
	for i := range int64(8) {
		require.Equal(t, 3.0, dag.F32.ToFloat(dag.F32.Load(memory, i)))
	}
	require.NoError(t, p.Close())
	require.NoError(t, cpu.Close())
}

func TestRunAloneNamesTheNode(t *testing.T) {
	p, cpu := alone(t, 1e6)
	err := p.RunAlone(t.Context(), 3)
	var node *runtime.NodeError
	require.True(t, errors.As(err, &node), "%v", err)
	require.Equal(t, "multiply", node.Node)
	require.Equal(t, 0, node.Replay)
	require.ErrorContains(t, err, `node "multiply" (stream `)
	var device *cudart.Error
	require.ErrorAs(t, err, &device)
	require.NoError(t, p.Close())
	require.NoError(t, cpu.Close())
}

func TestRunAloneStops(t *testing.T) {
	p, cpu := alone(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.RunAlone(ctx, 3), context.Canceled)
	require.NoError(t, p.Close())
	require.NoError(t, cpu.Close())
}
