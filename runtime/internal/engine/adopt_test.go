// A test of adopting plans: the bodies of loops follow.

package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

func TestBodiesFollowThePlanThatIsAdopted(t *testing.T) {
	b := dag.New("halving")
	b.Use(kernels.Library())
	x, left := b.Device("x", dag.F32, 8), b.Device("left", dag.F64, 1)
	b.Memset("start", b.Whole(left), 64)
	loop := b.Repeat("loop", dag.Loop{Until: "left < 1", Most: 50}, func() {
		b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(left)})
		b.Kernel("double", "scale", dag.Args{8, 2, b.Whole(x)})
	})
	g, err := b.Graph()
	require.NoError(t, err)
	platform, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer platform.Close()
	first, err := planner.New(t.Context(), g, planner.Options{Strategy: "serial"})
	require.NoError(t, err)
	p, err := New(t.Context(), g, first, platform, planner.GraphEdges, Options{})
	require.NoError(t, err)
	defer p.Close()
	require.Same(t, first.BodyOf(loop, 0), p.bodies[loop][0].plan)
	for _, streams := range []int{2, 1} {
		plan, err := planner.New(t.Context(), g, planner.Options{Streams: streams})
		require.NoError(t, err)
		require.NoError(t, p.Trials().Adopt(t.Context(), Way{Plan: plan, Mode: Streams, Threads: 1}))
		require.Same(t, plan.BodyOf(loop, 0), p.bodies[loop][0].plan)
		require.NoError(t, p.Run(t.Context(), 1))
	}
}

// failing is a platform that can refuse to encode commands.
type failing struct {
	cudart.Platform
	err error
}

func (f *failing) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Platform.Encode(commands, options)
}

// Where a plan cannot be adopted, the program replays as before, with its buffers where they were.
func TestPlansThatCannotBeAdoptedChangeNothing(t *testing.T) {
	b := dag.New("stages")
	b.Use(kernels.Library())
	var x []dag.BufferID
	for _, name := range []string{"a", "b", "c", "d"} {
		x = append(x, b.Device(name, dag.F32, 64))
	}
	b.Memset("start", b.Whole(x[0]), 3)
	for k := range 3 {
		b.Kernel("next"+string(rune('b'+k)), "square", dag.Args{64, b.Whole(x[k]), b.Whole(x[k+1])})
	}
	b.Save(x[3], "d.npy")
	g, err := b.Graph()
	require.NoError(t, err)
	cpu, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer cpu.Close()
	platform := &failing{Platform: cpu}
	apart, err := planner.New(t.Context(), g, planner.Options{KeepAll: true})
	require.NoError(t, err)
	shared, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	require.Less(t, shared.Stats.PeakDeviceBytes, apart.Stats.PeakDeviceBytes)
	p, err := New(t.Context(), g, apart, platform, planner.GraphEdges, Options{Mode: Streams})
	require.NoError(t, err)
	defer p.Close()
	addresses := func() (list []cudart.Ptr) {
		for _, id := range x {
			list = append(list, p.Address(id))
		}
		return list
	}
	was, way, live := addresses(), p.Way(), cpu.Live()
	for _, mode := range []Mode{Streams, Captured} {
		platform.err = errors.New("no more lists")
		require.ErrorIs(t, p.Trials().Adopt(t.Context(), Way{Plan: shared, Mode: mode, Threads: 1}), platform.err)
		platform.err = nil
		require.Equal(t, was, addresses())
		require.Equal(t, way, p.Way())
		require.Equal(t, live, cpu.Live(), "nothing is left of it")
		require.NoError(t, p.Run(t.Context(), 1))
		memory := make([]byte, 256)
		require.NoError(t, p.Read(t.Context(), x[3], memory))
		require.Equal(t, 6561.0, dag.F32.ToFloat(dag.F32.Load(memory, 63)), "3 to the eighth")
	}
	require.NoError(t, p.Trials().Adopt(t.Context(), Way{Plan: shared, Mode: Streams, Threads: 1}))
	require.NotEqual(t, was, addresses())
}
